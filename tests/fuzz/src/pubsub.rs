//! The wire of Pub/Sub.

use pumphouse_pubsub::fuzzing::{fits, received};

use crate::rejected::{again, copy};

/// Reads a message in Pub/Sub's own encoding, behind a byte of flags.
///
/// # Panics
/// Where the reading does.
pub fn pubsub(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else { return };
    let Some(delivery) = received(bytes, flags & 1 != 0) else { return };
    std::hint::black_box((fits(copy(&delivery)), fits(again(&delivery))));
}
