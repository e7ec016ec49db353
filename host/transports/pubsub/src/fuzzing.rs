//! The ways between the wire and a message, for fuzzing. Not for use.

use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::ReceivedMessage;
use prost::Message as _;
use pumphouse_contract::{Delivery, Lease, Mono, Outgoing};

use crate::incoming::{Reading, delivery};
use crate::outgoing::fit;

/// The delivery of a message in Pub/Sub's own encoding; none where it is not in that.
#[must_use]
pub fn received(bytes: &[u8], rejected: bool) -> Option<Delivery> {
    let message = ReceivedMessage::decode(bytes).ok()?;
    let lease = Lease::from(Mono::default(), Duration::from_secs(30));
    Some(delivery(message, lease, Reading { rejected }))
}

/// Whether a message can be made to fit a topic.
#[must_use]
pub fn fits(message: Outgoing) -> bool {
    fit(message).is_ok()
}
