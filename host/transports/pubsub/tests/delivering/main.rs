//! Receiving by pulls, settling and publishing: against the emulator, and through a proxy where something fails.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;
mod publishing;
mod receiving;
mod settling;
