//! The clocks that guests see: coarse, so that nothing as short as an access to memory can be told from another.
//!
//! A clock that shows nanoseconds lets a guest measure what the processor's caches hold, and so what other guests did.
//! Both clocks step by the host's `clock_resolution`, and say so where they are asked. A guest that counts its own
//! turns between two steps still has a timer of a kind, a much worse one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// What they step by where nobody says otherwise.
pub(crate) const STEP: Duration = Duration::from_millis(1);

/// Both clocks of one instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coarse {
    began: Instant,
    step: Duration,
}

impl Coarse {
    /// Clocks that step by so much; by a nanosecond at least.
    pub(crate) fn new(step: Duration) -> Self {
        Self { began: Instant::now(), step: step.max(Duration::from_nanos(1)) }
    }
}

impl HostMonotonicClock for Coarse {
    fn resolution(&self) -> u64 {
        nanos(self.step)
    }

    /// From one step on: Go's runtime takes a clock that stands at zero for a broken one, and dies.
    fn now(&self) -> u64 {
        nanos(rounded(self.began.elapsed(), self.step).saturating_add(self.step))
    }
}

impl HostWallClock for Coarse {
    fn resolution(&self) -> Duration {
        self.step
    }

    fn now(&self) -> Duration {
        rounded(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), self.step)
    }
}

impl Default for Coarse {
    fn default() -> Self {
        Self::new(STEP)
    }
}

/// Down to a whole number of steps.
fn rounded(time: Duration, step: Duration) -> Duration {
    let rest = time.as_nanos().checked_rem(step.as_nanos()).unwrap_or(0);
    time.saturating_sub(Duration::from_nanos(u64::try_from(rest).unwrap_or(0)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_of_steps_and_never_ahead() {
        let ms = Duration::from_millis;
        for (time, step, shown) in [
            (Duration::from_micros(12_999), ms(1), ms(12)),
            (ms(12), ms(5), ms(10)),
            (ms(4), ms(5), ms(0)),
            (Duration::from_nanos(7), Duration::from_nanos(1), Duration::from_nanos(7)),
            (Duration::MAX, ms(1), Duration::new(u64::MAX, 999_000_000)),
        ] {
            assert_eq!(rounded(time, step), shown, "{time:?} in steps of {step:?}");
        }
    }

    #[test]
    fn the_monotonic_clock_never_stands_at_zero() {
        let step = Duration::from_secs(3_600);
        assert_eq!(HostMonotonicClock::now(&Coarse::new(step)), nanos(step));
    }

    #[test]
    fn both_clocks_say_how_coarse_they_are() {
        let clock = Coarse::new(Duration::from_millis(2));
        assert_eq!(HostMonotonicClock::resolution(&clock), 2_000_000);
        assert_eq!(HostWallClock::resolution(&clock), Duration::from_millis(2));
        assert_eq!(HostMonotonicClock::now(&clock) % 2_000_000, 0);
        assert_eq!(HostWallClock::now(&clock).subsec_nanos() % 2_000_000, 0);
    }
}
