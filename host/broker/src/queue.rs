//! A queue: its ledger behind a lock, and the bell that wakes those who wait for a message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::error::BrokerError;
use crate::ledger::Ledger;
use crate::limits::LONGEST_NAME;

/// One queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// What the store calls it; 0 in memory.
    pub(crate) row: i64,
    ledger: Mutex<Ledger>,
    changed: Notify,
}

impl Queue {
    pub(crate) fn new(row: i64) -> Arc<Self> {
        Self::with(row, Ledger::default())
    }

    pub(crate) fn with(row: i64, ledger: Ledger) -> Arc<Self> {
        Arc::new(Self { row, ledger: Mutex::new(ledger), changed: Notify::new() })
    }

    /// Looks at the ledger.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&Ledger) -> R) -> R {
        look(&self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the ledger and wakes who must know of it.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Ledger) -> R) -> R {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let due_before = ledger.next_due();
        let result = change(&mut ledger);
        let sooner = ledger.next_due().is_some_and(|due| due_before.is_none_or(|was| due < was));
        let ready = ledger.has_ready();
        drop(ledger);
        if sooner {
            // Everyone who waits sleeps until the next due time; any of them may be the one who is left to see it.
            self.changed.notify_waiters();
        }
        if ready {
            // One is enough: when it leaves something behind, its own change wakes the next.
            self.changed.notify_one();
        }
        result
    }

    /// Completes at the next change that matters to a waiter.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Wakes everyone who waits.
    pub(crate) fn wake_all(&self) {
        self.changed.notify_waiters();
    }
}

/// All queues by name.
#[derive(Debug, Default)]
pub(crate) struct Queues(RwLock<BTreeMap<String, Arc<Queue>>>);

impl Queues {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Queue>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Adds a queue, unless there is one of that name.
    pub(crate) fn add(&self, name: &str, queue: Arc<Queue>) {
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        queues.entry(name.to_owned()).or_insert(queue);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub(crate) fn wake_all(&self) {
        let queues = self.0.read().unwrap_or_else(PoisonError::into_inner);
        queues.values().for_each(|queue| queue.wake_all());
    }
}

/// Whether a queue can have that name.
pub(crate) fn check_name(name: &str) -> Result<(), BrokerError> {
    let refused = |why| Err(BrokerError::Name(name.chars().take(LONGEST_NAME).collect(), why));
    if name.is_empty() {
        return refused("it is empty");
    }
    if name.len() > LONGEST_NAME {
        return refused("it is longer than 255 bytes");
    }
    if name.chars().any(char::is_control) {
        return refused("it has a control character");
    }
    Ok(())
}
