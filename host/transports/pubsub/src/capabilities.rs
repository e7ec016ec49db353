use std::time::Duration;

use pumphouse_contract::ports::{Capabilities, Counter, LeaseSetting, Ordering};

use crate::Mode;
use crate::settle::{BATCH, LONGEST_DELAY};

/// The most messages of one receive.
const RECEIVE: usize = 100;

/// The longest wait of one pull; the service itself ends one after about 90 s.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How long a settlement waits for others, and a pull for handlers: they go in one request.
const LINGER: Duration = Duration::from_millis(5);

/// What a subscription can do that is read so. Whether its count advances depends on its dead-letter policy, and
/// is said by the source.
#[must_use]
pub const fn capabilities(mode: Mode, ordered: bool) -> Capabilities {
    Capabilities {
        system: "gcp_pubsub",
        receive_batch: RECEIVE,
        settle_batch: BATCH,
        settle_linger: LINGER,
        receive_linger: LINGER,
        longest_wait: LONGEST_WAIT,
        longest_delay: LONGEST_DELAY,
        delay_counts_from_receive: false,
        longest_lease: LONGEST_DELAY,
        lease_setting: match mode {
            Mode::Pull => LeaseSetting::OnSource,
            Mode::Stream => LeaseSetting::OnReceive,
        },
        undispatched_release_counts: true,
        counter: Counter::Approximate,
        count_advances: true,
        ordering: if ordered { Ordering::Key } else { Ordering::None },
        // A stream hands over one message of a key at a time.
        batch_may_hold_followers: ordered && matches!(mode, Mode::Pull),
    }
}
