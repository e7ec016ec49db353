//! What the admin side sees of a running host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pumphouse_contract::ports::{SubscriptionStatus, Subscriptions};

use crate::host::slot::Slot;

/// The subscriptions by name, and whether the configuration on disk is in force.
#[derive(Default)]
pub(crate) struct View {
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
    rejected: Mutex<Option<String>>,
}

impl View {
    pub(crate) fn slots(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reject(&self, why: Option<String>) {
        *self.rejected.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Every slot, to be used without the lock.
    pub(crate) fn all(&self) -> Vec<Arc<Slot>> {
        self.slots().values().cloned().collect()
    }
}

impl Subscriptions for View {
    fn list(&self) -> Vec<SubscriptionStatus> {
        self.all().iter().map(|slot| slot.status()).collect()
    }

    fn rejected_configuration(&self) -> Option<String> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
