//! A tenant's rate: how many messages a second all its subscriptions receive together.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// What is saved up while nothing comes: the messages of one second.
const LONGEST_CREDIT: Duration = Duration::from_secs(1);

/// How fast messages may be received, shared by all subscriptions of a tenant.
///
/// What was received is charged, not what was asked for: a poll that waits for messages takes nothing from the
/// others. A receive may therefore bring more than was left, and the next one waits the longer for it; over any longer
/// time the rate holds.
#[derive(Debug)]
pub struct Pace {
    per_second: u32,
    /// When nothing was left; in the future where more came than the rate allows.
    empty_at: Mutex<Instant>,
}

impl Pace {
    /// So many messages a second; at least one.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        Self { per_second: per_second.max(1), empty_at: Mutex::new(Instant::now()) }
    }

    /// The rate.
    #[must_use]
    pub fn per_second(&self) -> u32 {
        self.per_second
    }

    /// Waits until a message may be received, and says how many may be. Takes nothing, so it may be dropped.
    pub(crate) async fn turn(&self) -> usize {
        loop {
            match self.left(Instant::now()) {
                Ok(messages) => return messages,
                Err(until) => sleep_until(until).await,
            }
        }
    }

    /// So many came.
    pub(crate) fn received(&self, messages: usize) {
        let cost = self.each().saturating_mul(u32::try_from(messages).unwrap_or(u32::MAX));
        let mut empty_at = self.empty_at();
        let longest = Instant::now().checked_sub(LONGEST_CREDIT).unwrap_or(*empty_at);
        *empty_at = (*empty_at).max(longest) + cost;
    }

    /// How many messages are left, or when one will be.
    fn left(&self, now: Instant) -> Result<usize, Instant> {
        let empty_at = *self.empty_at();
        let credit = now.saturating_duration_since(empty_at).min(LONGEST_CREDIT);
        let messages = credit.as_nanos() / self.each().as_nanos().max(1);
        match usize::try_from(messages) {
            Ok(0) => Err(empty_at + self.each()),
            Ok(messages) => Ok(messages),
            Err(_) => Ok(usize::MAX),
        }
    }

    /// What one message takes.
    fn each(&self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }

    fn empty_at(&self) -> MutexGuard<'_, Instant> {
        self.empty_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed(since: Instant, pace: &Pace) -> (usize, Duration) {
        let messages = pace.turn().await;
        (messages, since.elapsed())
    }

    /// Rounded to timer ticks.
    fn about(took: Duration, millis: u64) -> bool {
        let wanted = Duration::from_millis(millis);
        took >= wanted && took <= wanted + Duration::from_millis(3)
    }

    #[tokio::test(start_paused = true)]
    async fn one_message_is_free_after_its_time() {
        let began = Instant::now();
        let pace = Pace::new(10);
        let (messages, took) = passed(began, &pace).await;
        assert!(messages == 1 && about(took, 100), "{messages} after {took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_second_is_saved_up() {
        let pace = Pace::new(10);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(pace.turn().await, 10);
        let began = Instant::now();
        pace.received(10);
        let (messages, took) = passed(began, &pace).await;
        assert!(messages == 1 && about(took, 100), "{messages} after {took:?}");
    }

    /// C-18: more came than was left, so the next receive waits for all of it.
    #[tokio::test(start_paused = true)]
    async fn what_came_beyond_the_rate_is_waited_for() {
        let began = Instant::now();
        let pace = Pace::new(10);
        pace.received(29);
        let (_, took) = passed(began, &pace).await;
        assert!(about(took, 3_000), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_receive_costs_nothing() {
        let pace = Pace::new(1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        pace.received(0);
        assert_eq!(pace.turn().await, 1);
    }
}
