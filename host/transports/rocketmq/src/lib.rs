//! Apache RocketMQ 5: normal topics and FIFO topics, received by POP.
//!
//! [`Rocketmq`] is the connection; it makes the [`Source`](pumphouse_contract::ports::Source) of a topic and a
//! consumer group, and the [`Sink`](pumphouse_contract::ports::Sink) of a topic, after making or checking them as
//! [`Provision`] says. Nothing here retries a settlement or a publish: the pump does. Every call is bounded by
//! [`Timeouts`].
//!
//! - The delivery count is the broker's reconsume times; the attempt is that number and 1.
//! - A lease is the pop's invisible time. It is never renewed: RocketMQ counts a renewal as a delivery.
//! - A deferral is a change of the invisible time.

mod calls;
mod capabilities;
mod client;
mod error;
mod names;
mod provision;
mod settings;
mod sink;
mod source;
mod spec;

pub use capabilities::capabilities;
pub use client::Rocketmq;
pub use error::{ProvisionError, RocketmqError};
pub use settings::{Access, RocketmqSettings, Timeouts, Tls};
pub use spec::{GroupFacts, Kind, Provision, SinkSpec, SourceSpec};
