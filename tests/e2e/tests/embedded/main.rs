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
mod languages;
mod logs;
mod newcomer;
mod reload;
mod rules;
mod sandbox;
mod shutdown;
mod tenants;

fn main() -> std::process::ExitCode {
    pumphouse_e2e::run_all(
        5,
        &[
            commands::TESTS,
            configuration::TESTS,
            deploy::TESTS,
            disk::TESTS,
            kill::TESTS,
            languages::TESTS,
            logs::TESTS,
            newcomer::TESTS,
            reload::TESTS,
            rules::TESTS,
            sandbox::TESTS,
            shutdown::TESTS,
            tenants::TESTS,
        ],
    )
}
