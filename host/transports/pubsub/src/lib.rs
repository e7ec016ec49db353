//! Google Pub/Sub: pull and stream, with and without ordering keys.
//!
//! [`Pubsub`] is the connection; it makes the [`Source`](pumphouse_contract::ports::Source) of a subscription and
//! the [`Sink`](pumphouse_contract::ports::Sink) of a topic, after making or checking them as [`Provision`] says.
//! Nothing here retries a settlement or a publish: the pump does. Every call is bounded by [`Timeouts`].
//!
//! - The delivery count is `delivery_attempt`, which Pub/Sub reports only where the subscription has a dead-letter
//!   policy, and calls approximate: the n-th delivery says n or more (C-3).
//! - A deferral is `ModifyAckDeadline`, of up to 600 seconds.
//! - A rejected copy carries its metadata as attributes; [`PACKED`] says what becomes of headers that can't be any.

mod calls;
mod capabilities;
mod client;
mod credentials;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod incoming;
mod name;
mod outgoing;
mod packed;
mod project;
mod provision;
mod pull;
mod settings;
mod settle;
mod sink;
mod spec;
mod stream;
mod trace;

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

/// The attribute that says that the body has no byte, with the value `empty`. It stands on messages that would
/// otherwise have nothing at all, which Pub/Sub does not take, and is taken off on receive.
pub const ENCODING: &str = "pumphouse-encoding";

/// The attribute that holds, as JSON, what of a rejected copy can't be an attribute of Pub/Sub.
///
/// A message has at most 100 attributes, names of at most 256 bytes that don't begin with `goog`, and texts of at
/// most 1024 bytes. A copy is made to fit, in this order:
///
/// 1. Left out: `CloudPubSubDeadLetterSource…`, which tells of an earlier move, and the counters of brokers.
/// 2. Shortened on a character's border and ended in `…`: the metadata, each to 1024 bytes, and the description
///    further where the whole would be more than 10 MB. The metadata are attributes of their own.
/// 3. Encoded, as `["name", "String" | "Number" | "Binary", "text or base64"]` in the list `headers`: what has no
///    name, a name that is too long, begins with `goog`, is ours or is there already, and what is no text or is
///    too long. Then, where there are more than 100, the smallest of the others; `content-type`, `type`,
///    `traceparent` and `tracestate` last. A number is an attribute with its name in the list `numbers`, and an
///    ordering key of more than 1024 bytes is hashed and kept whole as `orderingKey`.
/// 4. That JSON is continued in `pumphouse-2`, `pumphouse-3` and so on. Where there are not enough of them, it
///    stands behind the body, and the attribute says `{"behindBody": n}`, with its length in bytes.
///
/// A source that knows rejected copies (C-7) undoes all of it but what was shortened or left out. A message that
/// is no copy is sent as it is or refused, a number as its text; of it too, Google's own attributes
/// (`googclient_…`, `CloudPubSubDeadLetterSource…`) are left out.
pub const PACKED: &str = "pumphouse";
