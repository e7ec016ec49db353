//! A message of Pub/Sub as a delivery.

use std::collections::HashMap;
use std::sync::Arc;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PubsubMessage, ReceivedMessage};
use pumphouse_contract::copy::names;
use pumphouse_contract::{
    Attempt, Counted, Delivery, HeaderValue, Headers, Lease, Message, Packed, Receipt, Timestamp,
};

use crate::outgoing::{EMPTY, Header};
use crate::{CONTENT_TYPE, ENCODING, packed, trace};

/// How a source reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// Whether what is packed in a rejected copy is unpacked (C-7).
    pub(crate) rejected: bool,
}

/// The count of a message, from its own field and without allocating, which the conformance suite proves (C-6).
/// A subscription without a dead-letter policy says 0, always.
#[must_use]
pub fn counted(message: &ReceivedMessage) -> Counted {
    Attempt::from_wire(message.delivery_attempt.into())
        .map_or(Counted::Unreported, Counted::AtLeast)
}

/// Makes the delivery of a message.
pub(crate) fn delivery(received: ReceivedMessage, lease: Lease, reading: Reading) -> Delivery {
    let counted = counted(&received);
    let message = received.message.unwrap_or_default();
    Delivery {
        counted,
        first_received_at: None,
        lease,
        receipt: Receipt::from(received.ack_id),
        undecodable: None,
        message: Arc::new(message_of(message, reading)),
    }
}

fn message_of(message: PubsubMessage, reading: Reading) -> Message {
    let PubsubMessage { mut attributes, data: mut body, ordering_key, .. } = message;
    let is_copy = reading.rejected && attributes.contains_key(names::REJECTION_REASON);
    let packed = if is_copy { packed::take(&mut attributes, &mut body) } else { None };
    if body.is_empty() && attributes.get(ENCODING).is_some_and(|how| how == EMPTY) {
        attributes.remove(ENCODING);
    }
    let packed = packed.unwrap_or_default();
    let ordering_key = packed.ordering_key.clone().unwrap_or(ordering_key);
    let mut headers = headers(attributes, packed);
    Message {
        id: message.message_id,
        content_type: take_content_type(&mut headers),
        headers: headers.into_iter().collect::<Headers>(),
        ordering_key: Some(ordering_key).filter(|key| !key.is_empty()),
        published_at: message.publish_time.and_then(|time| millis(time.seconds, time.nanos)),
        body,
    }
}

fn millis(seconds: i64, nanos: i32) -> Option<Timestamp> {
    let millis = seconds.checked_mul(1_000)?.checked_add(i64::from(nanos) / 1_000_000)?;
    u64::try_from(millis).ok().map(Timestamp)
}

/// Sorted by name, since Pub/Sub keeps no order; then those that were packed, in theirs.
fn headers(mut attributes: HashMap<String, String>, packed: Packed) -> Vec<Header> {
    attributes.retain(|name, _| !names::COUNTERS.contains(&name.as_str()));
    trace::rename(&mut attributes);
    let mut sorted: Vec<(String, String)> = attributes.into_iter().collect();
    sorted.sort_unstable();
    let plain = sorted.into_iter().map(|(name, text)| {
        let number = packed.numbers.contains(&name);
        let value = if number { HeaderValue::Number(text) } else { HeaderValue::Text(text) };
        (name, value)
    });
    let mut headers: Vec<Header> = plain.collect();
    headers.extend(packed.headers);
    headers
}

fn take_content_type(headers: &mut Vec<Header>) -> Option<String> {
    let plain =
        |(name, value): &Header| name == CONTENT_TYPE && matches!(value, HeaderValue::Text(_));
    let at = headers.iter().position(plain)?;
    match headers.remove(at).1 {
        HeaderValue::Text(text) => Some(text),
        HeaderValue::Number(_) | HeaderValue::Binary(_) => None,
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
