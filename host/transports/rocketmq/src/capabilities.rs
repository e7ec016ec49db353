use std::time::Duration;

use pumphouse_contract::ports::{Capabilities, Counter, LeaseSetting, Ordering};

use crate::Kind;

/// The most messages of one pop.
pub(crate) const RECEIVE: usize = 32;

/// The most settlements at once. RocketMQ answers for each, so each is a request of its own.
pub(crate) const SETTLE: usize = 32;

/// How long a pop waits for handlers that are about to be free: one for many costs the broker little more than one for
/// few.
const LINGER: Duration = Duration::from_millis(5);

/// A pop in progress can't be called off, and a drain waits for it.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The broker's timer wheel holds a message back for three days at most (`timerMaxDelaySec`).
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// What a topic of that kind can do.
#[must_use]
pub const fn capabilities(kind: Kind) -> Capabilities {
    Capabilities {
        system: "rocketmq",
        receive_batch: RECEIVE,
        settle_batch: SETTLE,
        settle_linger: Duration::ZERO,
        receive_linger: LINGER,
        longest_wait: LONGEST_WAIT,
        longest_delay: LONGEST_DELAY,
        delay_counts_from_receive: false,
        longest_lease: LONGEST_DELAY,
        lease_setting: LeaseSetting::OnReceive,
        undispatched_release_counts: true,
        counter: Counter::Approximate,
        count_advances: true,
        ordering: match kind {
            Kind::Normal => Ordering::None,
            Kind::Fifo => Ordering::Key,
        },
        batch_may_hold_followers: matches!(kind, Kind::Fifo),
    }
}
