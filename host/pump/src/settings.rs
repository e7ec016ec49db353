use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::ports::{Capabilities, Handler, Observer, Sink, Source, State};
use pumphouse_contract::{Clock, Destination, Destinations, LeaseBudget, Policy};
use tokio::sync::Semaphore;

use crate::pace::Pace;

/// How many deliveries of a subscription are in its handler at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// One after another.
    Sequential,
    /// Up to this many; those of one ordering key still one after another.
    Concurrent(usize),
}

impl Dispatch {
    /// The most deliveries at once.
    #[must_use]
    pub fn limit(self) -> usize {
        match self {
            Self::Sequential => 1,
            Self::Concurrent(limit) => limit.max(1),
        }
    }
}

/// What a subscription's pump keeps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Sequential or concurrent.
    pub dispatch: Dispatch,
    /// Retrying and rejecting.
    pub policy: Policy,
    /// Whether the source is a rejection destination, whose copies keep their stamped count (C-7).
    pub honours_copies: bool,
    /// What the lease is made of; its bounds hold for settling and publishing as well.
    pub lease: LeaseBudget,
    /// The longest wait of one receive. A drain waits for it.
    pub receive_wait: Duration,
    /// What a receive may take beyond its wait before it is given up (FR-33).
    pub receive_margin: Duration,
}

impl Settings {
    /// The wait to ask of a source: never beyond what it can, so that a drain knows how long it may take.
    pub(crate) fn wait(&self, capabilities: &Capabilities) -> Duration {
        self.receive_wait.min(capabilities.longest_wait)
    }
}

/// Where rejected messages go.
#[derive(Clone, Default)]
pub struct Sinks {
    /// `dead_letter`.
    pub dead_letter: Option<Arc<dyn Sink>>,
    /// `invalid_message`.
    pub invalid_message: Option<Arc<dyn Sink>>,
}

impl Sinks {
    pub(crate) fn configured(&self) -> Destinations {
        Destinations {
            dead_letter: self.dead_letter.is_some(),
            invalid_message: self.invalid_message.is_some(),
        }
    }

    pub(crate) fn get(&self, destination: Destination) -> Option<&Arc<dyn Sink>> {
        match destination {
            Destination::DeadLetter => self.dead_letter.as_ref(),
            Destination::InvalidMessage => self.invalid_message.as_ref(),
        }
    }
}

/// Where the idempotency key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The message id.
    Id,
    /// A header; the message id where it is missing.
    Header(String),
}

/// Deduplication of a subscription (S-5).
#[derive(Clone)]
pub struct Deduplicate {
    /// Where handled messages are remembered.
    pub state: Arc<dyn State>,
    /// `tenant/subscription/leg`.
    pub scope: Arc<str>,
    /// Where the key is.
    pub key: KeySource,
    /// How long a message is remembered.
    pub ttl: Duration,
}

/// A subscription with everything that it needs.
#[derive(Clone)]
pub struct Subscription {
    /// Its name.
    pub name: Arc<str>,
    /// The source as configured; what handlers and copies are told.
    pub source_name: Arc<str>,
    /// Where messages come from.
    pub source: Arc<dyn Source>,
    /// What handles them.
    pub handler: Arc<dyn Handler>,
    /// Where rejected ones go.
    pub sinks: Sinks,
    /// How duplicates are told.
    pub deduplicate: Option<Deduplicate>,
    /// What the handlers of the tenant share: calls at once. None: no limit.
    pub tenant: Option<Arc<Semaphore>>,
    /// What the subscriptions of the tenant share: messages a second. None: no rate.
    pub pace: Option<Arc<Pace>>,
    /// What takes note.
    pub observer: Arc<dyn Observer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What the pump keeps to.
    pub settings: Settings,
}
