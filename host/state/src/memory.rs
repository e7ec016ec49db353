//! The store that ends with the host.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{BoxFuture, Commit, MarkKey, State, StateError};

/// How many marks are kept at most, unless said otherwise.
const MOST: usize = 1_000_000;

/// How many expired marks one commit removes at most.
const PURGE: usize = 8;

/// Marks in memory, for hosts whose broker is in memory too.
///
/// Bounded twice: by the time-to-live, and by a number. Past the number the marks that would expire next are
/// forgotten, with one warning, and a duplicate of theirs is handled again, as at-least-once allows.
#[derive(Debug)]
pub struct MemoryState {
    marks: Mutex<Marks>,
    most: usize,
}

#[derive(Debug, Default)]
struct Marks {
    by_key: HashMap<Arc<MarkKey>, Place>,
    by_until: BTreeMap<Place, Arc<MarkKey>>,
    /// The latest time that a caller passed.
    now: Option<Timestamp>,
    next: u64,
    warned: bool,
}

/// Where a mark stands in the order of expiry; the number keeps marks of one time apart.
type Place = (Timestamp, u64);

impl Default for MemoryState {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryState {
    /// An empty store for a million marks.
    #[must_use]
    pub fn new() -> Self {
        Self::holding(MOST)
    }

    /// An empty store that holds at most so many marks, and one at least.
    #[must_use]
    pub fn holding(most: usize) -> Self {
        Self { marks: Mutex::default(), most: most.max(1) }
    }

    /// How many marks are held, those that are expired but not yet removed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no mark is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    fn seen(&mut self, key: &MarkKey, now: Timestamp) -> bool {
        self.now = Some(now);
        self.by_key.get(key).is_some_and(|(until, _)| *until > now)
    }

    fn store(&mut self, Commit { mark, until }: Commit, most: usize) {
        self.next += 1;
        let until = self.by_key.get(&mark).map_or(until, |(earlier, _)| until.max(*earlier));
        let (mark, place) = (Arc::new(mark), (until, self.next));
        if let Some(earlier) = self.by_key.insert(Arc::clone(&mark), place) {
            self.by_until.remove(&earlier);
        }
        self.by_until.insert(place, mark);
        self.purge();
        self.fit(most);
    }

    /// More go than come, so what has expired never piles up.
    fn purge(&mut self) {
        let Some(now) = self.now else { return };
        for _ in 0..PURGE {
            if self.by_until.first_key_value().is_none_or(|((until, _), _)| *until > now) {
                return;
            }
            self.forget_first();
        }
    }

    fn fit(&mut self, most: usize) {
        while self.by_key.len() > most {
            self.forget_first();
            if !std::mem::replace(&mut self.warned, true) {
                tracing::warn!(most, "marks in memory are forgotten before their time");
            }
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, mark)) = self.by_until.pop_first() {
            self.by_key.remove(&mark);
        }
    }
}

impl State for MemoryState {
    fn seen<'a>(
        &'a self,
        key: &'a MarkKey,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        let seen = self.lock().seen(key, now);
        Box::pin(std::future::ready(Ok(seen)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), StateError>> {
        self.lock().store(commit, self.most);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(n: u64, until: u64) -> Commit {
        let mark = MarkKey { scope: "acme/orders/acme/orders".into(), key: n.to_string() };
        Commit { mark, until: Timestamp(until) }
    }

    /// S-5: a TTL bounds the store.
    #[tokio::test]
    async fn s_5_expired_marks_are_removed_as_new_ones_come() {
        let state = MemoryState::new();
        for n in 0..10_000 {
            let one = commit(n, n + 100);
            state.seen(&one.mark, Timestamp(n)).await.unwrap();
            state.commit(one).await.unwrap();
            assert!(state.len() <= 101, "{}", state.len());
        }
    }

    #[tokio::test]
    async fn past_its_number_what_would_expire_next_is_forgotten() {
        let state = MemoryState::holding(10);
        for n in 0..100 {
            state.commit(commit(n, 1000 + n)).await.unwrap();
        }
        assert_eq!(state.len(), 10);
        assert!(!state.seen(&commit(89, 0).mark, Timestamp(1)).await.unwrap());
        assert!(state.seen(&commit(90, 0).mark, Timestamp(1)).await.unwrap());
    }

    #[tokio::test]
    async fn a_mark_that_is_stored_again_is_held_once() {
        let state = MemoryState::new();
        for until in [50, 900, 10] {
            state.commit(commit(1, until)).await.unwrap();
        }
        assert_eq!(state.len(), 1);
        assert_eq!(state.lock().by_until.len(), 1);
        assert!(state.seen(&commit(1, 0).mark, Timestamp(899)).await.unwrap());
    }
}
