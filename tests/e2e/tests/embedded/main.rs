//! The binary as a process on the embedded broker. Needs Rust alone.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod commands;
mod common;
mod configuration;
mod deploy;
mod disk;
mod kill;
mod logs;
mod newcomer;
mod reload;
mod sandbox;
mod shutdown;
