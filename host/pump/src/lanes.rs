//! Deliveries of one ordering key, one after another.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use pumphouse_contract::Delivery;
use tokio::sync::OwnedSemaphorePermit;

/// A delivery and the permit that it was received on.
pub(crate) type Held = (Delivery, OwnedSemaphorePermit);

/// What waits behind each key that is being handled. A key without an entry has no lane.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<HashMap<String, VecDeque<Held>>>);

impl Lanes {
    fn lanes(&self) -> std::sync::MutexGuard<'_, HashMap<String, VecDeque<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a delivery behind its key. Gives it back where the key has no lane: the caller begins one with it.
    pub(crate) fn enter(&self, key: &str, held: Held) -> Option<Held> {
        let mut lanes = self.lanes();
        if let Some(waiting) = lanes.get_mut(key) {
            waiting.push_back(held);
            return None;
        }
        lanes.insert(key.to_owned(), VecDeque::new());
        Some(held)
    }

    /// The next of a key. Where there is none the lane is gone.
    pub(crate) fn next(&self, key: &str) -> Option<Held> {
        let mut lanes = self.lanes();
        let next = lanes.get_mut(key).and_then(VecDeque::pop_front);
        if next.is_none() {
            lanes.remove(key);
        }
        next
    }
}
