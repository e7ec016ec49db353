//! The binary as a process on the real Apache RocketMQ, with the remoting fault proxy between them.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stderr, reason = "what the broker had not written down is told")]

mod broker;
mod common;
mod connections;
mod counting;
mod example;
mod interop;
mod killed;
mod ordering;
mod provision;
mod rejecting;
mod route;
mod settling;
mod shutdown;
mod volume;

use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    // Those that wait long, for a lease to lapse or a broker to end, begin first.
    let ended = pumphouse_e2e::run_all(
        8,
        &[
            route::TESTS,
            broker::TESTS,
            volume::TESTS,
            settling::TESTS,
            killed::TESTS,
            connections::TESTS,
            ordering::TESTS,
            rejecting::TESTS,
            counting::TESTS,
            shutdown::TESTS,
            interop::TESTS,
            provision::TESTS,
            example::TESTS,
        ],
    );
    // Acknowledged for good: not even when the lease is over, and the broker has looked, does any come again.
    let again = pumphouse_e2e::rocketmq::came_again(common::LEASE + Duration::from_secs(5));
    if again.is_empty() {
        return ended;
    }
    eprintln!("settled, and given again: {again:#?}");
    ExitCode::FAILURE
}
