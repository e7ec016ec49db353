//! Two clocks: one for ages and dates, one for leases and deadlines.

use std::time::Duration;

/// A point in time by the wall clock, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// How long ago `earlier` was. A clock that stepped back makes it zero, never negative.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The date in RFC 3339, in UTC with milliseconds: `2026-11-30T02:50:14.123Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        format!("{at:.3}")
    }
}

/// A point in time by the monotonic clock: the time since an origin that the clock chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub Duration);

impl Mono {
    /// This point, later by `by`.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// The time from `earlier` to this point; zero where `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The only way to the time.
pub trait Clock: Send + Sync {
    /// For ages and time-to-lives; it may step.
    fn wall(&self) -> Timestamp;
    /// For leases and deadlines; it never steps.
    fn mono(&self) -> Mono;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_rfc_3339_in_utc() {
        assert_eq!(Timestamp(1_796_007_014_123).rfc3339(), "2026-11-30T02:50:14.123Z");
        assert_eq!(Timestamp(0).rfc3339(), "1970-01-01T00:00:00.000Z");
        assert!(!Timestamp(u64::MAX).rfc3339().is_empty());
    }

    #[test]
    fn a_clock_that_steps_back_makes_ages_zero() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(
            Mono(Duration::from_secs(1)).since(Mono(Duration::from_secs(2))),
            Duration::ZERO
        );
    }
}
