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
mod doubts;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod hurry;
mod incoming;
mod inflate;
mod names;
mod outgoing;
mod packed;
mod pop;
mod provision;
mod queues;
mod receipt;
mod request;
mod resting;
mod routes;
mod settings;
mod settle;
mod sink;
mod source;
mod spec;

pub use capabilities::capabilities;
pub use client::Rocketmq;
pub use error::{ProvisionError, RocketmqError};
pub use incoming::counted;
pub use settings::{Access, RocketmqSettings, Timeouts, Tls};
pub use spec::{GroupFacts, Kind, Provision, SinkSpec, SourceSpec};

/// The property that holds the media type of the body.
pub const CONTENT_TYPE: &str = "content-type";

/// The property that says that the message has a body of no byte, with the value `empty`. RocketMQ takes no such
/// message; it is sent with one space as its body, which is taken off on receive.
pub const ENCODING: &str = "pumphouse-encoding";

/// The property that holds, as JSON, what of a rejected copy can't be a property of RocketMQ.
///
/// The properties of a message have at most 32,767 bytes, of which 1,024 are left for what the broker adds. They are
/// texts without the characters U+0001 and U+0002; empty ones are dropped; some names are RocketMQ's own. A copy is
/// made to fit, in this order:
///
/// 1. Left out: the counters that brokers write into headers, as on every transport. Empty metadata, which a source
///    that knows copies puts in again. What RocketMQ itself wrote to route, delay and trace the original (`POP_CK`,
///    `DELAY`, `REAL_TOPIC`, …) is not a header of it, and so not of the copy.
/// 2. Shortened on a character's border and ended in `…`: the metadata to 1,024 bytes each; the description to
///    15,871, and to 1,024 where the headers need the room. The metadata are properties of their own; U+0001 and
///    U+0002 in them become U+FFFD.
/// 3. Encoded, as `["name", "String" | "Number" | "Binary", "text or base64"]` in the list `headers`: what has no
///    name or no value, has a name of RocketMQ's or of ours or one that is there already, has U+0001 or U+0002, or
///    is of bytes. A number is a property with its name in the list `numbers`. A message group of more than 1,024
///    bytes or with U+0001 or U+0002 is hashed, and kept whole as `orderingKey`; that is empty where the original
///    had none and the copy for a FIFO topic needs one, which is the original's id.
/// 4. Where the properties are too many, the largest are encoded, too; `KEYS`, `TAGS`, `content-type`, `type`,
///    `traceparent` and `tracestate` last. The JSON then stands behind the body, and the property says
///    `{"behindBody": n}`, with its length in bytes.
///
/// A source that knows rejected copies (C-7) undoes all of it but what was shortened, replaced or left out. A
/// message that is no copy is sent as it is or refused, a number as its text.
pub const PACKED: &str = "pumphouse";
