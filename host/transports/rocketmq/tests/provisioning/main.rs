//! Making and checking topics and groups against real brokers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod access;
mod common;
mod creating;
mod differences;
mod tls;

#[path = "../shared/mod.rs"]
mod shared;
