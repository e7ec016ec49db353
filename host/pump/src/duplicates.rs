//! Seen → handle → mark → ack (S-5). Of two copies at once one runs, and the other waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::{Commit, MarkKey, StateError};
use pumphouse_contract::{Clock, Message, Timestamp};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::settings::{Deduplicate, KeySource};

pub(crate) struct Duplicates {
    settings: Deduplicate,
    clock: Arc<dyn Clock>,
    /// Keys that are being handled; the channel closes when the one that runs has ended.
    running: Mutex<HashMap<String, watch::Receiver<()>>>,
}

/// What is known of a delivery before it is handled.
pub(crate) enum Seen<'a> {
    /// It is the first, or the only one that is left.
    First(Claim<'a>),
    /// It was handled before.
    Before,
    /// Another copy is still being handled.
    Running,
}

/// The right to handle a key, until it is dropped.
pub(crate) struct Claim<'a> {
    duplicates: &'a Duplicates,
    key: MarkKey,
    _running: watch::Sender<()>,
}

impl Duplicates {
    pub(crate) fn new(settings: Deduplicate, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock, running: Mutex::default() }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, watch::Receiver<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, message: &Message) -> MarkKey {
        let key = match &self.settings.key {
            KeySource::Id => message.id.as_str(),
            KeySource::Header(name) => message.headers.text(name).unwrap_or(&message.id),
        };
        MarkKey { scope: self.settings.scope.clone(), key: key.to_owned() }
    }

    /// Whether the message may be handled. Waits at most `patience` for a copy that is being handled.
    pub(crate) async fn look(
        &self,
        message: &Message,
        patience: Duration,
    ) -> Result<Seen<'_>, StateError> {
        let key = self.key(message);
        let Ok(claim) = timeout(patience, self.claim(&key)).await else {
            return Ok(Seen::Running);
        };
        // Asked with the claim in hand: whoever ran before has left its mark by now.
        let seen = self.settings.state.seen(&key, self.clock.wall()).await?;
        Ok(if seen { Seen::Before } else { Seen::First(claim) })
    }

    async fn claim(&self, key: &MarkKey) -> Claim<'_> {
        loop {
            let mut other = match self.try_claim(key) {
                Ok(claim) => return claim,
                Err(other) => other,
            };
            // An error is the close that is waited for.
            let _ = other.changed().await;
        }
    }

    fn try_claim(&self, key: &MarkKey) -> Result<Claim<'_>, watch::Receiver<()>> {
        let mut running = self.running();
        if let Some(other) = running.get(&key.key) {
            return Err(other.clone());
        }
        let (sender, receiver) = watch::channel(());
        running.insert(key.key.clone(), receiver);
        Ok(Claim { duplicates: self, key: key.clone(), _running: sender })
    }
}

impl Claim<'_> {
    /// Remembers that the message is handled.
    pub(crate) async fn mark(&self) -> Result<(), StateError> {
        let Duplicates { settings, clock, .. } = self.duplicates;
        let ttl = u64::try_from(settings.ttl.as_millis()).unwrap_or(u64::MAX);
        let until = Timestamp(clock.wall().0.saturating_add(ttl));
        settings.state.commit(Commit { mark: self.key.clone(), until }).await
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.duplicates.running().remove(&self.key.key);
    }
}
