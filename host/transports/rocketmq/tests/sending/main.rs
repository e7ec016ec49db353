//! Publishing: what arrives, in which queue, and what is said where it does not.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;
mod copies;
mod failing;
mod queues;

#[path = "../shared/mod.rs"]
mod shared;
