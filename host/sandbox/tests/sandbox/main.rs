//! The sandbox with real components: honest, hostile, broken, replaced while they run.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what helpers find wrong fails the test"
)]

mod calls;
mod common;
mod deploy;
mod hostile;
mod logs;
mod watch;
mod wit;
