//! What a subscription's configuration says about retrying and rejecting.

use std::fmt;
use std::time::Duration;

use crate::{Count, Reason, Roll};

/// `max_deliveries`: the most deliveries, the first included, before a deferral becomes a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// `-1`, the default: no budget.
    Unlimited,
    /// 1 or more.
    Deliveries(u32),
    /// 0 or below −1: the first deferral rejects, and finding F-1 asks what was meant (C-5).
    Suspicious(i64),
}

impl Budget {
    /// The budget that a configured number means.
    #[must_use]
    pub fn from_configured(number: i64) -> Self {
        match number {
            -1 => Self::Unlimited,
            n if n >= 1 => Self::Deliveries(u32::try_from(n).unwrap_or(u32::MAX)),
            n => Self::Suspicious(n),
        }
    }

    /// Whether a deferral at this count is one too many: c + 1 ≥ R (C-4, C-5).
    #[must_use]
    pub fn is_spent_by(self, count: Count) -> bool {
        match self {
            Self::Unlimited => false,
            Self::Deliveries(most) => count.deliveries() >= most,
            Self::Suspicious(_) => true,
        }
    }

    /// The count from which a delivery is routed without a call: max(2R, R + 3) (C-17).
    #[must_use]
    pub fn guard(self) -> Option<Count> {
        match self {
            Self::Unlimited | Self::Suspicious(_) => None,
            Self::Deliveries(most) => {
                Some(Count(most.saturating_mul(2).max(most.saturating_add(3))))
            }
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("none"),
            Self::Deliveries(most) => write!(f, "{most}"),
            Self::Suspicious(number) => write!(f, "{number}"),
        }
    }
}

/// How a delay is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Anywhere between nothing and the whole delay.
    Full,
    /// The delay as it is.
    None,
}

/// How long a deferral without a delay of its own waits (S-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first delivery.
    pub base: Duration,
    /// Never longer.
    pub max: Duration,
    /// How it is spread.
    pub jitter: Jitter,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(60), jitter: Jitter::Full }
    }
}

impl Backoff {
    /// base × 2^count, capped, spread by `roll`.
    #[must_use]
    pub fn after(&self, count: Count, roll: Roll) -> Duration {
        let factor = 1u32.checked_shl(count.0.min(31)).unwrap_or(u32::MAX);
        self.spread(self.base.saturating_mul(factor), roll)
    }

    /// The same schedule read off the age of a message whose count can't advance: after an age of
    /// base × (2^n − 1) the next delay is base × 2^n.
    #[must_use]
    pub fn after_age(&self, age: Duration, roll: Roll) -> Duration {
        if self.base.is_zero() {
            return Duration::ZERO;
        }
        self.spread(age.saturating_add(self.base), roll)
    }

    fn spread(&self, delay: Duration, roll: Roll) -> Duration {
        let delay = delay.min(self.max);
        match self.jitter {
            Jitter::None => delay,
            Jitter::Full => delay.mul_f64(roll.0),
        }
    }
}

/// What a fault means for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// A deferral, under the budget and the window.
    #[default]
    Defer,
    /// A rejection with `delivery-error`, at once.
    Reject,
}

/// Everything that [`decide`](crate::decide()) needs to know of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// `max_deliveries`.
    pub budget: Budget,
    /// `retry.backoff`, `retry.max_backoff`, `retry.jitter`.
    pub backoff: Backoff,
    /// `retry.window`: past it, a deferral becomes a `delivery-error` (S-3).
    pub window: Option<Duration>,
    /// `on_fault`.
    pub on_fault: OnFault,
    /// Whether messages whose count shows that their lease keeps lapsing are routed without a call (C-17).
    pub guard: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            budget: Budget::Unlimited,
            backoff: Backoff::default(),
            window: None,
            on_fault: OnFault::default(),
            guard: true,
        }
    }
}

/// One of a subscription's two rejection destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// `dead_letter`.
    DeadLetter,
    /// `invalid_message`.
    InvalidMessage,
}

impl Destination {
    /// The name as a metric label and in logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::DeadLetter => "dead_letter",
            Self::InvalidMessage => "invalid_message",
        }
    }
}

/// Which destinations are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Destinations {
    /// Whether `dead_letter` is.
    pub dead_letter: bool,
    /// Whether `invalid_message` is.
    pub invalid_message: bool,
}

impl Destinations {
    /// Where a message of this reason goes; none where the configuration has no place for it (C-10, C-12).
    /// The dead-letter destination stands in for a missing invalid-message destination, never the reverse.
    #[must_use]
    pub fn choose(self, reason: Reason) -> Option<Destination> {
        let dead_letter = self.dead_letter.then_some(Destination::DeadLetter);
        match reason {
            Reason::Unacceptable if self.invalid_message => Some(Destination::InvalidMessage),
            Reason::Unacceptable | Reason::DeliveryError | Reason::None => dead_letter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// C-4, C-5.
    #[test]
    fn a_budget_is_spent_at_its_edge() {
        let table: &[(i64, u32, bool)] = &[
            (-1, 0, false),
            (-1, u32::MAX, false),
            (1, 0, true),
            (2, 0, false),
            (2, 1, true),
            (3, 1, false),
            (3, 2, true),
            (3, 9, true),
            (0, 0, true),
            (-2, 0, true),
            (i64::MAX, 7, false),
        ];
        for (configured, count, spent) in table {
            let budget = Budget::from_configured(*configured);
            assert_eq!(budget.is_spent_by(Count(*count)), *spent, "R {configured}, c {count}");
        }
    }

    /// C-17.
    #[test]
    fn the_guard_stands_at_twice_the_budget_or_three_above_it() {
        for (configured, guard) in
            [(1, Some(4)), (2, Some(5)), (3, Some(6)), (10, Some(20)), (-1, None), (0, None)]
        {
            assert_eq!(
                Budget::from_configured(configured).guard(),
                guard.map(Count),
                "R {configured}"
            );
        }
    }

    /// S-2.
    #[test]
    fn backoff_doubles_up_to_its_cap() {
        let backoff = Backoff { base: MS(1000), max: MS(60_000), jitter: Jitter::None };
        for (count, delay) in
            [(0, 1000), (1, 2000), (5, 32_000), (6, 60_000), (40, 60_000), (u32::MAX, 60_000)]
        {
            assert_eq!(backoff.after(Count(count), Roll::new(0.3)), MS(delay), "count {count}");
        }
        for (age, delay) in [(0, 1000), (1000, 2000), (31_000, 32_000), (900_000, 60_000)] {
            assert_eq!(backoff.after_age(MS(age), Roll::new(0.3)), MS(delay), "age {age}");
        }
    }

    #[test]
    fn full_jitter_spreads_over_the_whole_delay() {
        let backoff = Backoff { base: MS(1000), max: MS(60_000), jitter: Jitter::Full };
        assert_eq!(backoff.after(Count(1), Roll::new(0.0)), Duration::ZERO);
        assert_eq!(backoff.after(Count(1), Roll::new(0.5)), MS(1000));
    }

    #[test]
    fn no_backoff_stays_none_at_every_age() {
        let backoff = Backoff { base: Duration::ZERO, max: MS(60_000), jitter: Jitter::None };
        assert_eq!(backoff.after(Count(9), Roll::new(0.9)), Duration::ZERO);
        assert_eq!(backoff.after_age(MS(90_000), Roll::new(0.9)), Duration::ZERO);
    }

    /// C-10, C-12.
    #[test]
    fn a_reason_has_one_destination() {
        use Destination::{DeadLetter, InvalidMessage};
        let table = [
            (true, true, Some(InvalidMessage), Some(DeadLetter)),
            (true, false, Some(DeadLetter), Some(DeadLetter)),
            (false, true, Some(InvalidMessage), None),
            (false, false, None, None),
        ];
        for (dead_letter, invalid_message, unacceptable, others) in table {
            let configured = Destinations { dead_letter, invalid_message };
            assert_eq!(configured.choose(Reason::Unacceptable), unacceptable);
            assert_eq!(configured.choose(Reason::DeliveryError), others);
            assert_eq!(configured.choose(Reason::None), others);
        }
    }
}
