//! What a call takes of the processors, and how long it waited for one.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::shares::Short;
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
    /// Time in which the guest could have run and had no processor, no place or no instance.
    pub(crate) waited: Duration,
    /// What was short when it had to wait for a place last.
    pub(crate) short: Option<Short>,
    ready_since: Option<Instant>,
    turns: u32,
}

/// One turn of a guest.
pub(crate) struct Turn<T> {
    pub(crate) polled: Poll<T>,
    /// Time on a processor.
    pub(crate) used: Duration,
    /// It gave its turn away at a tick, and is ready for the next one.
    pub(crate) yielded: bool,
}

impl Meter {
    /// Of a call that has waited for its first turn.
    pub(crate) fn after(waited: Duration) -> Self {
        Self { waited, ..Self::default() }
    }

    /// It is ready and has to wait.
    pub(crate) fn wait(&mut self, short: Option<Short>) {
        self.short = short;
        self.ready_since.get_or_insert_with(Instant::now);
    }

    /// It will not get another turn: what it waits for until now is added.
    pub(crate) fn end(&mut self) {
        if let Some(since) = self.ready_since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Runs one turn of a future and charges it.
    pub(crate) fn turn<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Turn<F::Output> {
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
        let used = match exact {
            Some(before) => thread_time().saturating_sub(before),
            None => (ended - began).min(LONGEST_TURN),
        };
        self.cpu += used;
        let yielded = polled.is_pending() && YIELDED.get();
        self.ready_since = yielded.then_some(ended);
        Turn { polled, used, yielded }
    }
}

/// What this thread has had of a processor.
pub(crate) fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;

    async fn run<F: Future>(meter: &mut Meter, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| meter.turn(future.as_mut(), cx).polled).await
    }

    #[tokio::test]
    async fn a_wait_of_the_guests_own_costs_nothing_and_is_no_waiting_for_a_processor() {
        let mut meter = Meter::default();
        run(&mut meter, tokio::time::sleep(Duration::from_millis(50))).await;
        assert!(meter.cpu < Duration::from_millis(20), "{meter:?}");
        assert_eq!(meter.waited, Duration::ZERO);
    }

    #[tokio::test]
    async fn between_giving_a_turn_away_and_the_next_one_a_guest_waits() {
        let mut meter = Meter::default();
        let guest = run(&mut meter, async {
            note_yield();
            tokio::task::yield_now().await;
        });
        tokio::join!(guest, async { std::thread::sleep(Duration::from_millis(20)) });
        assert!(meter.waited >= Duration::from_millis(20), "{meter:?}");
        assert!(meter.cpu < Duration::from_millis(20), "{meter:?}");
    }

    #[test]
    fn a_wait_that_nothing_follows_counts_until_the_end() {
        let mut meter = Meter::default();
        meter.wait(Some(Short::All));
        std::thread::sleep(Duration::from_millis(5));
        meter.wait(Some(Short::Tenant));
        meter.end();
        assert!(meter.waited >= Duration::from_millis(5), "{meter:?}");
        assert_eq!(meter.short, Some(Short::Tenant));
    }
}
