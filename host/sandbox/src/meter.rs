//! What a call takes of the processors, and how long it waited for one.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::ticker::TICK;

/// Beyond so long in one turn a thread did not run: a guest gives it back at every tick.
const LONGEST_TURN: Duration = TICK.saturating_mul(2);

thread_local! {
    static YIELDED: Cell<bool> = const { Cell::new(false) };
}

/// Says that the guest on this thread gives its turn away and is ready for the next one.
pub(crate) fn note_yield() {
    YIELDED.set(true);
}

/// The account of one call.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Time on a processor.
    pub(crate) cpu: Duration,
    /// Time in which the guest could have run and had no processor.
    pub(crate) waited: Duration,
    ready_since: Option<Instant>,
    turns: u32,
}

impl Meter {
    /// Of a call that has waited for its first turn.
    pub(crate) fn after(waited: Duration) -> Self {
        Self { waited, ..Self::default() }
    }

    /// Runs a future and charges each of its turns.
    pub(crate) async fn run<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| self.turn(future.as_mut(), cx)).await
    }

    fn turn<F: Future>(&mut self, future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let began = Instant::now();
        if let Some(since) = self.ready_since.take() {
            self.waited += began - since;
        }
        // Most calls end in their first turn: they are spared the thread's own clock, a system call.
        let exact = (self.turns > 0).then(thread_time);
        self.turns = self.turns.saturating_add(1);
        YIELDED.set(false);
        let polled = future.poll(cx);
        let ended = Instant::now();
        self.cpu += match exact {
            Some(before) => thread_time().saturating_sub(before),
            None => (ended - began).min(LONGEST_TURN),
        };
        self.ready_since = (polled.is_pending() && YIELDED.get()).then_some(ended);
        polled
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_of_the_guests_own_costs_nothing_and_is_no_waiting_for_a_processor() {
        let mut meter = Meter::default();
        meter.run(tokio::time::sleep(Duration::from_millis(50))).await;
        assert!(meter.cpu < Duration::from_millis(20), "{meter:?}");
        assert_eq!(meter.waited, Duration::ZERO);
    }

    #[tokio::test]
    async fn between_giving_a_turn_away_and_the_next_one_a_guest_waits() {
        let mut meter = Meter::default();
        let guest = meter.run(async {
            note_yield();
            tokio::task::yield_now().await;
        });
        tokio::join!(guest, async { std::thread::sleep(Duration::from_millis(20)) });
        assert!(meter.waited >= Duration::from_millis(20), "{meter:?}");
        assert!(meter.cpu < Duration::from_millis(20), "{meter:?}");
    }
}
