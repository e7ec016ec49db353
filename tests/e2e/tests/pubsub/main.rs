//! The binary as a process on the real Pub/Sub emulator, with the gRPC fault proxy between them.
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
mod counting;
mod example;
mod interop;
mod killed;
mod ordering;
mod rejecting;
mod settling;
mod shutdown;
mod streams;
mod volume;

fn main() -> std::process::ExitCode {
    // Those that wait long, for a lease to lapse above all, begin first.
    pumphouse_e2e::run_all(
        8,
        &[
            killed::TESTS,
            volume::TESTS,
            settling::TESTS,
            streams::TESTS,
            connections::TESTS,
            ordering::TESTS,
            counting::TESTS,
            example::TESTS,
            interop::TESTS,
            rejecting::TESTS,
            shutdown::TESTS,
        ],
    )
}
