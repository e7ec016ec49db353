//! How long a message must be ours, and how long it is.

use std::time::Duration;

use crate::Mono;

/// How long one delivery is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// When the message was received, by the host's clock.
    pub received: Mono,
    /// When the broker may hand it to someone else.
    pub until: Mono,
}

impl Lease {
    /// A lease that began before the request was sent, so that it never seems longer than it is.
    #[must_use]
    pub fn from(received: Mono, length: Duration) -> Self {
        Self { received, until: received.plus(length) }
    }

    /// What is left of it.
    #[must_use]
    pub fn left(&self, now: Mono) -> Duration {
        self.until.since(now)
    }
}

/// The parts that make up the lease of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseBudget {
    /// How long a received message may wait in the host before its call begins.
    pub queue_wait: Duration,
    /// The handler's deadline.
    pub deadline: Duration,
    /// How long a settlement waits for others of its batch.
    pub linger: Duration,
    /// The bound of one settlement request.
    pub settle_timeout: Duration,
    /// How often a settlement is tried.
    pub settle_tries: u32,
    /// The bound of publishing a rejected copy (C-9); none where nothing is routed.
    pub publish_timeout: Option<Duration>,
    /// For clocks that differ and requests that travel.
    pub skew: Duration,
}

impl LeaseBudget {
    /// How long settling may take: linger + timeout × tries.
    #[must_use]
    pub fn settling(&self) -> Duration {
        self.linger.saturating_add(self.settle_timeout.saturating_mul(self.settle_tries))
    }

    /// How long routing may take: publishing, then settling.
    #[must_use]
    pub fn routing(&self) -> Duration {
        self.publish_timeout.unwrap_or_default().saturating_add(self.settling())
    }

    /// The lease to ask for: queue wait + deadline + the longer of settling and routing + skew.
    #[must_use]
    pub fn length(&self) -> Duration {
        [self.deadline, self.settling().max(self.routing()), self.skew]
            .into_iter()
            .fold(self.queue_wait, Duration::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn budget() -> LeaseBudget {
        LeaseBudget {
            queue_wait: S(1),
            deadline: S(30),
            linger: Duration::from_millis(5),
            settle_timeout: S(5),
            settle_tries: 3,
            publish_timeout: Some(S(10)),
            skew: S(2),
        }
    }

    #[test]
    fn a_lease_covers_the_longest_way_through_the_host() {
        assert_eq!(budget().settling(), Duration::from_millis(15_005));
        assert_eq!(budget().routing(), Duration::from_millis(25_005));
        assert_eq!(budget().length(), Duration::from_millis(58_005));
        let no_route = LeaseBudget { publish_timeout: None, ..budget() };
        assert_eq!(no_route.length(), Duration::from_millis(48_005));
    }

    #[test]
    fn an_absurd_part_saturates() {
        let absurd = LeaseBudget { settle_timeout: Duration::MAX, ..budget() };
        assert_eq!(absurd.length(), Duration::MAX);
    }

    #[test]
    fn what_is_left_is_never_negative() {
        let lease = Lease::from(Mono(S(10)), S(5));
        assert_eq!(lease.left(Mono(S(12))), S(3));
        assert_eq!(lease.left(Mono(S(99))), Duration::ZERO);
    }
}
