//! Receiving and settling on the real broker, and through a proxy where something fails.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;
mod counting;
mod faults;
mod ordered;
mod receiving;
mod settling;
mod several;

#[path = "../shared/mod.rs"]
mod shared;
