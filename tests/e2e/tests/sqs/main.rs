//! The binary as a process on real SQS servers, with the fault proxy between them.
#![cfg(feature = "sqs")]
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;
mod connections;
mod example;
mod killed;
mod rejecting;
mod settling;
mod shutdown;
