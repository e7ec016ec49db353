//! Which deliveries are in progress, and since when.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::Mono;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    next: AtomicU64,
    /// By an ascending number, so that the first is the oldest.
    since: Mutex<BTreeMap<u64, Mono>>,
    /// Deliveries that have no outcome yet, those whose task has yet to run included; a settlement that waits for
    /// company looks here.
    undecided: AtomicUsize,
}

impl Progress {
    fn since(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Mono>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A delivery begins; it is in progress until the guard is dropped.
    pub(crate) fn begin(&self, now: Mono) -> InProgress<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.since().insert(number, now);
        InProgress { progress: self, number }
    }

    /// A delivery will have an outcome soon, and is undecided until the guard is dropped.
    pub(crate) fn expect(self: &Arc<Self>) -> Undecided {
        self.undecided.fetch_add(1, Ordering::AcqRel);
        Undecided(self.clone())
    }

    pub(crate) fn undecided(&self) -> usize {
        self.undecided.load(Ordering::Acquire)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.since().len()
    }

    pub(crate) fn oldest(&self, now: Mono) -> Option<Duration> {
        self.since().first_key_value().map(|(_, since)| now.since(*since))
    }
}

#[derive(Debug)]
pub(crate) struct InProgress<'a> {
    progress: &'a Progress,
    number: u64,
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.progress.since().remove(&self.number);
    }
}

/// A delivery without an outcome. Dropped when the outcome is known; what is left is settling.
#[derive(Debug)]
pub(crate) struct Undecided(Arc<Progress>);

impl Drop for Undecided {
    fn drop(&mut self) {
        self.0.undecided.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_first_that_is_still_in_progress() {
        let progress = Progress::default();
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let first = progress.begin(at(1));
        let second = progress.begin(at(3));
        assert_eq!(progress.oldest(at(5)), Some(Duration::from_secs(4)));
        drop(first);
        assert_eq!(progress.in_flight(), 1);
        assert_eq!(progress.oldest(at(5)), Some(Duration::from_secs(2)));
        drop(second);
        assert_eq!(progress.in_flight(), 0);
        assert_eq!(progress.oldest(at(5)), None);
    }

    #[test]
    fn a_delivery_is_undecided_from_its_receipt_to_its_outcome() {
        let progress = Arc::new(Progress::default());
        let (first, second) = (progress.expect(), progress.expect());
        assert_eq!((progress.in_flight(), progress.undecided()), (0, 2));
        drop(first);
        assert_eq!(progress.undecided(), 1);
        drop(second);
        assert_eq!(progress.undecided(), 0);
    }
}
