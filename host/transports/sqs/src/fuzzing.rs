//! The ways between the wire and a message, for fuzzing. Not for use.

use std::time::Duration;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    Message as SqsMessage, MessageAttributeValue, MessageSystemAttributeName,
};
use pumphouse_contract::{Delivery, Lease, Mono, Outgoing};

use crate::incoming::{Reading, delivery, lacking};
use crate::outgoing::{Shape, fit};
use crate::{Envelope, receipt};

/// A message as SQS gives it.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The body.
    pub body: String,
    /// Each with its name, its data type and its value, which is text where it is UTF-8 and not said to be binary.
    pub attributes: Vec<(String, String, Vec<u8>)>,
    /// SQS's own, by name.
    pub system: Vec<(String, String)>,
    /// Whether SNS put an envelope around it.
    pub enveloped: bool,
    /// Whether it was read from a rejection destination.
    pub rejected: bool,
}

/// The delivery of a message; none where it lacks what every delivery needs.
#[must_use]
pub fn received(received: Received) -> Option<Delivery> {
    let mut message = SqsMessage::builder().message_id("m").receipt_handle("r").body(received.body);
    for (name, data_type, value) in received.attributes {
        if let Some(value) = attribute(&data_type, value) {
            message = message.message_attributes(name, value);
        }
    }
    for (name, value) in received.system {
        message = message.attributes(MessageSystemAttributeName::from(name.as_str()), value);
    }
    let message = message.build();
    if lacking(&message).is_some() {
        return None;
    }
    let envelope = if received.enveloped { Envelope::Enveloped } else { Envelope::Raw };
    let reading = Reading { envelope, rejected: received.rejected };
    let delivery =
        delivery(message, Lease::from(Mono::default(), Duration::from_secs(30)), reading);
    receipt::open(&delivery.receipt)?;
    Some(delivery)
}

fn attribute(data_type: &str, value: Vec<u8>) -> Option<MessageAttributeValue> {
    let builder = MessageAttributeValue::builder().data_type(data_type);
    let builder = match String::from_utf8(value) {
        Ok(text) if !data_type.starts_with("Binary") => builder.string_value(text),
        Ok(text) => builder.binary_value(Blob::new(text)),
        Err(error) => builder.binary_value(Blob::new(error.into_bytes())),
    };
    builder.build().ok()
}

/// Whether a message can be made to fit a queue, ordered or not.
#[must_use]
pub fn fits(message: Outgoing, fifo: bool) -> bool {
    fit(message, Shape { fifo, limit: None }).is_ok()
}
