//! Google Pub/Sub: pull and stream, with and without ordering keys.
//!
//! [`Pubsub`] is the connection; it makes the [`Source`](pumphouse_contract::ports::Source) of a subscription and
//! the [`Sink`](pumphouse_contract::ports::Sink) of a topic, after making or checking them as [`Provision`] says.
//! Nothing here retries a settlement or a publish: the pump does. Every call is bounded by [`Timeouts`].
//!
//! - The delivery count is `delivery_attempt`, which Pub/Sub reports only where the subscription has a dead-letter
//!   policy, and calls approximate: the n-th delivery says n or more (C-3).
//! - A deferral is `ModifyAckDeadline`, of up to 600 seconds.
//! - A rejected copy carries its metadata as attributes.

mod calls;
mod capabilities;
mod client;
mod credentials;
mod error;
mod incoming;
mod name;
mod project;
mod provision;
mod pull;
mod settings;
mod settle;
mod sink;
mod spec;
mod stream;

pub use capabilities::capabilities;
pub use client::Pubsub;
pub use error::{ProvisionError, PubsubError};
pub use incoming::counted;
pub use settings::{PubsubSettings, Timeouts};
pub use spec::{
    Mode, NativeDeadLetter, Provision, RetryPolicy, SinkSpec, SourceSpec, SubscriptionFacts,
};

/// The attribute that holds the media type of the body.
pub const CONTENT_TYPE: &str = "content-type";
