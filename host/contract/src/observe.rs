//! What a pump saw, for metrics.

use std::time::Duration;

use crate::decide::Decision;
use crate::policy::Destination;
use crate::ports::Failure;
use crate::{Count, FaultKind, Reason, Usage};

/// What a pump saw, for metrics. Recording must not block.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields of the short variants are said by the variants")]
pub enum Event<'a> {
    /// A receive came back, with so many messages.
    Received { messages: usize, took: Duration },
    /// A receive failed.
    ReceiveFailed { kind: &'static str, took: Duration },
    /// A receive did not come back within its bound and was given up (FR-33).
    ReceiveStalled,
    /// A call began.
    Began,
    /// A call ended and was decided upon.
    Handled {
        /// What was decided.
        decision: &'a Decision,
        /// The fault, where there was no answer.
        fault: Option<FaultKind>,
        /// The count of the delivery.
        count: Count,
        /// How long the call took.
        took: Duration,
        /// What it used.
        usage: Usage,
    },
    /// A delivery was routed without a call.
    Turned { reason: Reason },
    /// A duplicate was acknowledged without a call (S-5).
    Duplicate,
    /// A delivery was given back without a call (C-18).
    GivenBack,
    /// A guest asked for a longer delay than the broker gives (S-2).
    DelayShortened,
    /// A copy was published and confirmed.
    Routed { to: Destination, reason: Reason, took: Duration },
    /// A copy could not be published.
    RouteFailed { to: Destination, reason: Reason },
    /// A rejected message had no destination and was removed (C-12).
    Discarded { reason: Reason },
    /// A settlement ended.
    Settled {
        /// `ack` or `release`.
        action: &'static str,
        /// How it failed, where it did.
        failure: Option<Failure>,
        /// How long it took, waiting for its batch included.
        took: Duration,
    },
    /// A copy was read whose stamped count is honoured; for the log line of C-7.
    CopyRead,
}

/// Takes note of what a pump saw. One for each subscription.
pub trait Observer: Send + Sync {
    /// Takes note.
    fn record(&self, event: Event<'_>);
}
