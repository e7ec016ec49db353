//! Instances that are kept, and handlers in languages that want it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what helpers find wrong fails the test"
)]

#[allow(dead_code, reason = "shared with the other tests of the sandbox")]
#[path = "../sandbox/common.rs"]
mod common;
mod languages;
mod reuse;
