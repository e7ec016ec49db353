//! A message of Pub/Sub as a delivery.

use std::sync::Arc;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PubsubMessage, ReceivedMessage};
use pumphouse_contract::copy::names;
use pumphouse_contract::{
    Attempt, Counted, Delivery, HeaderValue, Headers, Lease, Message, Receipt, Timestamp,
};

use crate::CONTENT_TYPE;

/// The count of a message, from its own field and without allocating, which the conformance suite proves (C-6).
/// A subscription without a dead-letter policy says 0, always.
#[must_use]
pub fn counted(message: &ReceivedMessage) -> Counted {
    Attempt::from_wire(message.delivery_attempt.into())
        .map_or(Counted::Unreported, Counted::AtLeast)
}

/// Makes the delivery of a message.
pub(crate) fn delivery(received: ReceivedMessage, lease: Lease) -> Delivery {
    let counted = counted(&received);
    let message = received.message.unwrap_or_default();
    Delivery {
        counted,
        first_received_at: None,
        lease,
        receipt: Receipt::from(received.ack_id),
        undecodable: None,
        message: Arc::new(message_of(message)),
    }
}

fn message_of(message: PubsubMessage) -> Message {
    let published_at = message.publish_time.and_then(|time| {
        let millis =
            time.seconds.checked_mul(1_000)?.checked_add(i64::from(time.nanos) / 1_000_000)?;
        u64::try_from(millis).ok().map(Timestamp)
    });
    let mut attributes = message.attributes;
    let content_type = attributes.remove(CONTENT_TYPE);
    // Pub/Sub keeps no order of them.
    let mut sorted: Vec<(String, String)> = attributes
        .into_iter()
        .filter(|(name, _)| !names::COUNTERS.contains(&name.as_str()))
        .collect();
    sorted.sort_unstable();
    let headers: Headers =
        sorted.into_iter().map(|(name, value)| (name, HeaderValue::Text(value))).collect();
    Message {
        id: message.message_id,
        headers,
        content_type,
        ordering_key: Some(message.ordering_key).filter(|key| !key.is_empty()),
        published_at,
        body: message.data,
    }
}
