//! Making and checking topics, subscriptions and roles: against the emulator, and against a server that answers
//! for the policies, of which the emulator has none.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;
mod creating;
mod destinations;
mod differences;
mod iam;
mod logs;
mod scripted;
