//! Amazon SQS and SNS to SQS: standard and FIFO queues, fed directly or through a topic.
//!
//! [`Sqs`] is the connection; it makes the [`Source`](pumphouse_contract::ports::Source) of a queue and the
//! [`Sink`](pumphouse_contract::ports::Sink) of a destination, after making or checking them as
//! [`Provision`] says. Nothing here retries: the pump does. Every call is bounded by [`Timeouts`].
//!
//! - The delivery count is `ApproximateReceiveCount`, asked for on every receive: the n-th delivery says n or
//!   more, since a receive whose answer was lost is counted too (C-3).
//! - A deferral is `ChangeMessageVisibility` within what is left of the 12 hours that begin at the receive.
//! - A rejected copy carries its metadata in one attribute; see [`PACKED`].

mod attributes;
mod body;
mod calls;
mod client;
mod envelope;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod incoming;
mod labels;
mod name;
mod outgoing;
mod packed;
mod provision;
mod receipt;
mod settings;
mod settle;
mod sink;
mod source;
mod spec;
mod trace;

pub use client::Sqs;
pub use error::{ProvisionError, SqsError};
pub use incoming::counted;
pub use name::queue_name;
pub use settings::{SqsSettings, StaticCredentials, Timeouts};
pub use source::CAPABILITIES;
pub use spec::{Envelope, NativeRedrive, Provision, QueueFacts, SinkSpec, SourceSpec};

/// The attribute that holds a rejected copy's metadata as JSON.
pub const PACKED: &str = "pumphouse";

/// The attribute that says how the body is encoded: `base64`, or `empty` for a body of no bytes.
pub const ENCODING: &str = "pumphouse-encoding";

/// The header that keeps the custom data types of attributes (`String.uuid`) as JSON, name to data type. It is
/// never an attribute on the wire.
pub const TYPES: &str = "pumphouse-types";

/// The attribute that holds the media type of the body.
pub const CONTENT_TYPE: &str = "content-type";
