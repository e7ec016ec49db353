//! The binary as a process, for tests: built once, started in a folder of its own, asked, signalled, killed.
//!
//! A [`Scene`] is a folder with a configuration, a state directory and a free port. A [`Host`] is a process that
//! runs in it, ended when dropped, and also when the test process ends in any other way. Every wait is bounded; one
//! that fails shows the end of the host's log.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here is a failed test"
)]

mod admin;
mod build;
mod cli;
#[cfg(feature = "sqs")]
mod cloud;
mod host;
mod log;
mod port;
#[cfg(feature = "pubsub")]
pub mod pubsub;
#[cfg(feature = "pubsub")]
pub mod python;
#[cfg(feature = "rocketmq")]
pub mod rocketmq;
mod room;
mod scene;
#[cfg(any(feature = "sqs", feature = "pubsub", feature = "rocketmq"))]
mod servers;
mod suite;
mod wait;

pub use admin::{Answer, Metrics, get, publish_to};
pub use build::{assembled, binary, component_text, digest, guest, guests, root};
pub use cli::{Ran, run, run_within};
#[cfg(feature = "sqs")]
pub use cloud::{Depth, Queue, elasticmq, fauxqs, scene, unpacked};
pub use host::{Host, Signal, resident};
pub use log::{Call, Line, Log};
pub use room::{Room, is_root};
pub use scene::Scene;
#[cfg(any(feature = "sqs", feature = "pubsub", feature = "rocketmq"))]
pub use servers::{block_on, unique};
pub use suite::{Named, run_all};
pub use wait::{LONG, until, until_some};
