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
mod compile;
mod deploy;
mod fairness;
mod hostile;
mod logs;
mod reports;
mod resident;
mod tenancy;
mod tenants;
mod watch;
mod wit;
