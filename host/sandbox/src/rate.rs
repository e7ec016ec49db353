//! How much a tenant may log in a second. What is above it is dropped and counted; it ends no call.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::settings::TenantLimits;

/// What may be used at once after a rest, and how often a tenant's dropped lines are told at most.
const SECOND: Duration = Duration::from_secs(1);

/// The log rates of one tenant, over all its calls.
#[derive(Debug, Default)]
pub(crate) struct LogRate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: Bucket,
    lines: Bucket,
    /// Lines and bytes that were dropped and not told yet.
    dropped: (u64, u64),
    told: Option<Instant>,
}

/// Filled at a steady rate, up to what flows in a second.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// When it will be full. None, or the past: it is.
    full: Option<Instant>,
}

impl LogRate {
    /// Whether a line of so many bytes may be logged now.
    pub(crate) fn allows(&self, tenant: &str, limits: &TenantLimits, bytes: u64) -> bool {
        let (byte_rate, line_rate) = (limits.log_bytes_per_second, limits.log_lines_per_second);
        if byte_rate.is_none() && line_rate.is_none() {
            return true;
        }
        let now = Instant::now();
        let mut state = self.state();
        let allowed = state.take(now, (bytes, byte_rate), line_rate);
        let told = if allowed { None } else { state.tell(now) };
        drop(state);
        say(tenant, told);
        allowed
    }

    /// Says what was dropped and not told yet; for the time after a flood, when nobody logs.
    pub(crate) fn settle(&self, tenant: &str) {
        let told = self.state().tell(Instant::now());
        say(tenant, told);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Never what was dropped: only how much.
fn say(tenant: &str, told: Option<(u64, u64)>) {
    let Some((lines, bytes)) = told else { return };
    tracing::warn!(
        tenant,
        lines,
        bytes,
        "log lines dropped: the tenant's handlers log more than `limits.log_rate` or `limits.log_lines_rate`"
    );
}

impl State {
    /// Takes one line from both buckets, or from neither.
    fn take(&mut self, now: Instant, bytes: (u64, Option<u64>), line_rate: Option<u64>) -> bool {
        let after = self.bytes.without(now, bytes.0, bytes.1);
        match after.zip(self.lines.without(now, 1, line_rate)) {
            Some((bytes, lines)) => {
                (self.bytes, self.lines) = (bytes, lines);
                true
            }
            None => {
                self.dropped = (self.dropped.0 + 1, self.dropped.1 + bytes.0);
                false
            }
        }
    }

    /// What was dropped, where it is time to say so.
    fn tell(&mut self, now: Instant) -> Option<(u64, u64)> {
        let due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= SECOND);
        if !due || self.dropped.0 == 0 {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.dropped))
    }
}

impl Bucket {
    /// The bucket after so much was taken; none where it holds less. A full one gives anything: otherwise a line that is
    /// longer than the rate would never be logged.
    fn without(self, now: Instant, amount: u64, rate: Option<u64>) -> Option<Self> {
        let Some(rate) = rate else { return Some(self) };
        let nanos = u128::from(amount) * SECOND.as_nanos() / u128::from(rate.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let missing = self.full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        let gives = rate > 0 && (missing.is_zero() || missing + cost <= SECOND);
        // At most a minute of silence, however long the line was.
        let full = now + (missing + cost).min(SECOND * 60);
        gives.then_some(Self { full: Some(full) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(state: &mut State, now: Instant, lines: u64, bytes: u64) -> u64 {
        let taken = (0..lines).filter(|_| state.take(now, (bytes, Some(1_000)), Some(10)));
        taken.count() as u64
    }

    #[test]
    fn a_seconds_worth_at_once_and_then_the_rate() {
        let (mut state, start) = (State::default(), Instant::now());
        assert_eq!(allowed(&mut state, start, 50, 1), 10, "lines");
        assert_eq!(allowed(&mut state, start + SECOND / 2, 50, 1), 5);
        assert_eq!(allowed(&mut state, start + SECOND * 10, 50, 200), 5, "bytes");
        assert_eq!(state.dropped.0, 40 + 45 + 45);
    }

    #[test]
    fn a_line_that_is_longer_than_the_rate_is_logged_when_nothing_was_for_a_while() {
        let (mut state, start) = (State::default(), Instant::now());
        assert_eq!(allowed(&mut state, start, 2, 2_500), 1);
        assert_eq!(allowed(&mut state, start + SECOND, 1, 10), 0);
        assert_eq!(allowed(&mut state, start + SECOND * 2, 1, 10), 1);
    }

    #[test]
    fn a_rate_of_zero_logs_nothing_and_none_everything() {
        let (mut state, start) = (State::default(), Instant::now());
        assert!(!state.take(start, (1, Some(0)), None));
        assert!((0..10_000).all(|_| state.take(start, (1_000, None), None)));
    }

    #[test]
    fn what_was_dropped_is_told_once_a_second_at_most_and_completely() {
        let (mut state, start) = (State::default(), Instant::now());
        allowed(&mut state, start, 30, 1);
        assert_eq!(state.tell(start), Some((20, 20)));
        allowed(&mut state, start, 30, 1);
        assert_eq!(state.tell(start + SECOND / 2), None);
        assert_eq!(state.tell(start + SECOND), Some((30, 30)));
        assert_eq!(state.tell(start + SECOND * 2), None);
    }
}
