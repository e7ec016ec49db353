//! The binary as a process on real SQS servers, with the fault proxy between them.
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
mod rules;
mod settling;
mod shutdown;

fn main() -> std::process::ExitCode {
    pumphouse_e2e::run_all(
        6,
        &[
            connections::TESTS,
            example::TESTS,
            killed::TESTS,
            rejecting::TESTS,
            rules::TESTS,
            settling::TESTS,
            shutdown::TESTS,
        ],
    )
}
