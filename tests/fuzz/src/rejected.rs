//! A message from the wire is rejected: its copy goes to the wire again.

use pumphouse_contract::{
    Count, Delivery, Outgoing, Provenance, Reason, Timestamp, Why, rejected_copy,
};

/// The copy of a delivery.
pub(crate) fn copy(delivery: &Delivery) -> Outgoing {
    let from = Provenance {
        source: "fuzzed",
        rejected_by: "fuzzed/acme/fuzzed@0",
        now: Timestamp(1_700_000_000_000),
    };
    let why = Why::Handler(delivery.message.id.repeat(3));
    rejected_copy(&delivery.message, Count(2), Reason::Unacceptable, &why, from)
}

/// The message as an ordinary one that somebody publishes.
pub(crate) fn again(delivery: &Delivery) -> Outgoing {
    Outgoing { stamp: None, ..copy(delivery) }
}
