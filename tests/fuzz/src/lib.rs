//! What is fuzzed: a function for each target, from bytes to a panic where something is wrong.
//!
//! The same functions are called by the programs of `fuzz/`, which follow coverage for as long as they are let, and by
//! this crate's own test, which runs through the corpora and through mutations of them for a few seconds.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what is wrong is told by a panic"
)]

mod config;
mod guest;
mod input;
pub mod mutation;
#[cfg(feature = "pubsub")]
mod pubsub;
#[cfg(any(feature = "pubsub", feature = "rocketmq", feature = "sqs"))]
mod rejected;
#[cfg(feature = "rocketmq")]
mod rocketmq;
mod sandbox;
#[cfg(feature = "sqs")]
mod sqs;

pub use config::config;
pub use guest::guest;
#[cfg(feature = "pubsub")]
pub use pubsub::pubsub;
#[cfg(feature = "rocketmq")]
pub use rocketmq::rocketmq;
pub use sandbox::{artefact, component};
#[cfg(feature = "sqs")]
pub use sqs::sqs;

/// A target: its name, its function, and the longest input that it is given, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// As the program in `fuzz/` and the folder of its corpus are named.
    pub name: &'static str,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
    /// The longest input.
    pub longest: usize,
}

/// All of them that this build has.
pub const TARGETS: &[Target] = &[
    Target { name: "config", run: config, longest: 4_096 },
    #[cfg(feature = "sqs")]
    Target { name: "sqs", run: sqs, longest: 4_096 },
    #[cfg(feature = "pubsub")]
    Target { name: "pubsub", run: pubsub, longest: 4_096 },
    #[cfg(feature = "rocketmq")]
    Target { name: "rocketmq", run: rocketmq, longest: 4_096 },
    Target { name: "guest", run: guest, longest: 4_096 },
    Target { name: "component", run: component, longest: 8_192 },
    Target { name: "artefact", run: artefact, longest: 4_096 },
];
