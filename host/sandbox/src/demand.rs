//! What a tenant's calls want of the processors, and whether its subscriptions may receive more (C-18).

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::window::Window;

/// The calls of one tenant that are under way.
#[derive(Debug)]
pub(crate) struct Demand {
    /// Calls that were begun and have not ended.
    under_way: AtomicUsize,
    /// Of these, those that wait in a host call and want no processor.
    pending: AtomicUsize,
    window: Mutex<Window>,
    /// Whether the window has a size; a call that ends looks here first.
    bounded: AtomicBool,
    room: Notify,
}

/// How a call ended, as far as the window is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It waited for little, and ended by itself.
    InTime,
    /// It says nothing about whether there was room.
    Neither,
}

enum Room {
    Open,
    For(NonZeroUsize),
    Full,
}

impl Demand {
    pub(crate) fn new(runnable: usize) -> Self {
        Self {
            under_way: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            window: Mutex::new(Window::new(runnable)),
            bounded: AtomicBool::new(true),
            room: Notify::new(),
        }
    }

    /// A call begins.
    pub(crate) fn begin(&self) {
        self.under_way.fetch_add(1, SeqCst);
    }

    /// A call ended.
    pub(crate) fn end(&self, pace: Pace) {
        self.under_way.fetch_sub(1, SeqCst);
        if !self.bounded.load(SeqCst) {
            return;
        }
        if pace == Pace::InTime {
            self.change(Window::in_time);
        }
        self.room.notify_waiters();
    }

    /// A call waits in a host call.
    pub(crate) fn pend(&self) {
        self.pending.fetch_add(1, SeqCst);
        if self.bounded.load(SeqCst) {
            self.room.notify_waiters();
        }
    }

    /// A call is back from its host call.
    pub(crate) fn resume(&self) {
        self.pending.fetch_sub(1, SeqCst);
    }

    /// A call has waited too long for its turn.
    pub(crate) fn late(&self, runnable: usize) {
        self.change(|window| window.late(runnable));
    }

    /// The tenant may compute in so many places from now on.
    pub(crate) fn resize(&self, runnable: usize) {
        self.change(|window| window.resize(runnable));
        self.room.notify_waiters();
    }

    /// Whether there is a bound because a call was late.
    pub(crate) fn is_slowed(&self) -> bool {
        self.window().is_slowed()
    }

    /// Resolves when there is room for calls, and says for how many; none without a bound.
    pub(crate) async fn welcome(&self) -> Option<NonZeroUsize> {
        loop {
            let mut changed = pin!(self.room.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.room() {
                Room::Open => return None,
                Room::For(calls) => return Some(calls),
                Room::Full => changed.await,
            }
        }
    }

    fn room(&self) -> Room {
        if !self.bounded.load(SeqCst) {
            return Room::Open;
        }
        let Some(size) = self.window().size() else { return Room::Open };
        let wanting = self.under_way.load(SeqCst).saturating_sub(self.pending.load(SeqCst));
        NonZeroUsize::new(size.saturating_sub(wanting)).map_or(Room::Full, Room::For)
    }

    fn change(&self, change: impl FnOnce(&mut Window)) {
        let mut window = self.window();
        change(&mut window);
        self.bounded.store(window.size().is_some(), SeqCst);
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    async fn opens(demand: &Demand) -> bool {
        tokio::time::timeout(Duration::from_millis(20), demand.welcome()).await.is_ok()
    }

    #[tokio::test]
    async fn there_is_room_until_the_window_is_full_and_again_when_a_call_ends_or_pends() {
        let demand = Demand::new(1);
        assert_eq!(demand.welcome().await, NonZeroUsize::new(2));
        demand.begin();
        assert_eq!(demand.welcome().await, NonZeroUsize::new(1));
        demand.begin();
        assert!(!opens(&demand).await);
        demand.pend();
        assert!(opens(&demand).await);
        demand.resume();
        assert!(!opens(&demand).await);
        demand.end(Pace::Neither);
        assert_eq!(demand.welcome().await, NonZeroUsize::new(1));
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_the_end_of_a_call() {
        let demand = Arc::new(Demand::new(1));
        (0..2).for_each(|_| demand.begin());
        let waiting = tokio::spawn({
            let demand = demand.clone();
            async move { demand.welcome().await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        demand.end(Pace::Neither);
        let room = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
        assert_eq!(room, NonZeroUsize::new(1));
    }

    #[tokio::test]
    async fn calls_that_end_in_time_lift_the_bound_and_a_late_one_brings_it_back() {
        let demand = Demand::new(1);
        for _ in 0..1_000 {
            demand.begin();
            demand.end(Pace::InTime);
        }
        assert_eq!(demand.welcome().await, None);
        demand.late(1);
        assert_eq!(demand.welcome().await, NonZeroUsize::new(2));
    }
}
