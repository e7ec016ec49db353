//! What the admin side sees of a running host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pumphouse_config::Config;
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{
    BoxFuture, HandlerTerms, PublishError, Queues, SubscriptionStatus, Subscriptions, TenantTerms,
    Terms, Waiting,
};
use tokio_util::sync::CancellationToken;

use crate::host::running::{Common, InForce, Opening};
use crate::host::slot::Slot;
use crate::host::start::Opened;

/// The subscriptions by name, and whether the configuration on disk is in force.
pub(crate) struct View {
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
    rejected: Mutex<Option<String>>,
    queues: Mutex<Option<Arc<dyn Queues>>>,
    config: Mutex<Arc<Config>>,
    /// The host ends: nothing more is opened.
    pub(crate) closing: CancellationToken,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    pub(crate) fn new(in_force: &InForce) -> Self {
        Self {
            slots: Mutex::default(),
            rejected: Mutex::default(),
            queues: Mutex::new(in_force.transports.queues()),
            config: Mutex::new(in_force.config.clone()),
            closing: CancellationToken::new(),
        }
    }

    /// Shows what a reload has brought: another configuration, perhaps an embedded broker.
    pub(crate) fn show(&self, in_force: &InForce) {
        *locked(&self.queues) = in_force.transports.queues();
        *locked(&self.config) = in_force.config.clone();
    }

    /// Begins these subscriptions, unless the host ends.
    pub(crate) fn open(&self, opened: Vec<Opened>, common: &Common, in_force: &InForce) {
        if self.closing.is_cancelled() {
            return;
        }
        for (name, wired) in opened {
            let slot = Opening::new(&name, common, in_force).slot(wired);
            locked(&self.slots).insert(name, slot);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Slot>> {
        locked(&self.slots).get(name).cloned()
    }

    pub(crate) fn remove(&self, name: &str) {
        locked(&self.slots).remove(name);
    }

    pub(crate) fn reject(&self, why: Option<String>) {
        *locked(&self.rejected) = why;
    }

    /// Every slot, to be used without the lock.
    pub(crate) fn all(&self) -> Vec<Arc<Slot>> {
        locked(&self.slots).values().cloned().collect()
    }

    fn queues(&self, queue: &str) -> Result<Arc<dyn Queues>, PublishError> {
        let none =
            || PublishError::Missing(queue.to_owned(), "this host has no embedded broker".into());
        locked(&self.queues).clone().ok_or_else(none)
    }
}

impl Subscriptions for View {
    fn list(&self) -> Vec<SubscriptionStatus> {
        self.all().iter().map(|slot| slot.status()).collect()
    }

    fn rejected_configuration(&self) -> Option<String> {
        locked(&self.rejected).clone()
    }
}

impl Terms for View {
    fn of_tenant(&self, name: &str) -> Option<TenantTerms> {
        locked(&self.config).tenant_terms(name)
    }

    fn of_handler(&self, name: &str) -> Option<HandlerTerms> {
        locked(&self.config).handler_terms(name)
    }
}

impl Queues for View {
    fn publish<'a>(
        &'a self,
        queue: &'a str,
        message: Outgoing,
    ) -> BoxFuture<'a, Result<String, PublishError>> {
        Box::pin(async move { self.queues(queue)?.publish(queue, message).await })
    }

    fn peek<'a>(
        &'a self,
        queue: &'a str,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<Waiting>, PublishError>> {
        Box::pin(async move { self.queues(queue)?.peek(queue, max).await })
    }
}
