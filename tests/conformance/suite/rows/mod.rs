//! How each configuration is had: its queues, its source and sinks, and how its messages are sent.

mod embedded;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(feature = "sqs")]
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Address, Outgoing};

use crate::cell::Cell;
use crate::world::World;

pub(crate) use embedded::Embedded;
#[cfg(feature = "sqs")]
pub(crate) use sqs::{Sqs, allocations_of_counting};

/// The queues of one channel, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    Source,
    DeadLetter,
    Invalid,
    /// Where the broker's own policy moves messages.
    Native,
    /// A queue that does not exist, until a case makes it.
    Missing,
}

/// Names that no other channel has.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    stem: String,
    fifo: bool,
}

impl Names {
    pub(crate) fn new(stem: String, fifo: bool) -> Self {
        Self { stem, fifo }
    }

    pub(crate) fn of(&self, place: Place) -> String {
        let what = match place {
            Place::Source => "source",
            Place::DeadLetter => "dead-letter",
            Place::Invalid => "invalid",
            Place::Native => "native",
            Place::Missing => "missing",
        };
        self.named(what)
    }

    fn named(&self, what: &str) -> String {
        let suffix = if self.fifo { ".fifo" } else { "" };
        format!("{}-{what}{suffix}", self.stem)
    }

    #[cfg(feature = "sqs")]
    pub(crate) fn topic(&self) -> String {
        self.named("topic")
    }
}

/// What a case needs of its queues beyond their being there.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "sqs"), expect(dead_code, reason = "queues have no settings"))]
pub(crate) struct Wants {
    /// M: the broker's own limit, where it has one.
    pub(crate) native: Option<u32>,
    /// The most bytes that the dead-letter destination takes, where that can be set.
    pub(crate) dead_letter_bytes: Option<u32>,
}

/// What a queue says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueFacts {
    pub(crate) native_limit: Option<u32>,
    pub(crate) retention: Option<Duration>,
}

/// The broker's side of one trial.
pub(crate) enum Rig {
    Embedded(Embedded),
    #[cfg(feature = "sqs")]
    Sqs(Box<Sqs>),
}

impl Rig {
    pub(crate) async fn new(world: &Arc<World>, cell: Cell) -> Result<Self> {
        #[cfg(feature = "sqs")]
        if !cell.configuration.is_embedded() {
            return Ok(Self::Sqs(Box::new(Sqs::new(world, cell).await?)));
        }
        Ok(Self::Embedded(Embedded::new(world, cell.configuration).await?))
    }

    /// Makes the queues of a channel: its source, its two destinations, and what else it wants.
    #[cfg_attr(not(feature = "sqs"), expect(unused_variables, reason = "queues have no settings"))]
    pub(crate) async fn create(&self, names: &Names, wants: Wants) -> Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.create(names).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.create(names, wants).await,
        }
    }

    /// Makes one more queue.
    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.create_queue(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.create_queue(queue).await,
        }
    }

    /// Whether a queue is there.
    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        match self {
            Self::Embedded(embedded) => embedded.exists(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.exists(queue).await,
        }
    }

    /// The source of a channel, with transport objects of its own.
    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        match self {
            Self::Embedded(embedded) => embedded.source(&names.of(Place::Source)).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.source(names).await,
        }
    }

    /// A destination as a host reads it: as a source of rejected copies.
    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        match self {
            Self::Embedded(embedded) => embedded.source(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.reader(queue).await,
        }
    }

    /// A queue that a host publishes to. It need not be there.
    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        match self {
            Self::Embedded(embedded) => embedded.sink(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.sink(queue).await,
        }
    }

    /// A queue as a case itself looks at it, past the proxy: copies are unpacked.
    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        match self {
            Self::Embedded(embedded) => embedded.source(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.look(queue).await,
        }
    }

    /// How full a queue is, asked past the proxy.
    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        match self {
            Self::Embedded(embedded) => embedded.sink(queue).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.gauge(queue).await,
        }
    }

    /// Sends a message the way that this configuration's messages come.
    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.send(&names.of(Place::Source), message).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.send(names, message).await,
        }
    }

    /// As if the host were started anew, as far as a broker of this configuration can outlive it.
    pub(crate) async fn restart(&self) -> Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.restart().await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.restart().await,
        }
    }

    /// What the source itself says; nothing where queues have no settings.
    #[cfg_attr(not(feature = "sqs"), expect(unused_variables, reason = "queues have no settings"))]
    pub(crate) async fn facts(&self, names: &Names) -> Result<QueueFacts> {
        match self {
            Self::Embedded(_) => Ok(QueueFacts::default()),
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.facts(names).await,
        }
    }

    /// Calls that hosts made so far, by operation; none where the broker is part of the host.
    pub(crate) fn calls(&self) -> Option<BTreeMap<String, u64>> {
        match self {
            Self::Embedded(_) => None,
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => Some(sqs.calls()),
        }
    }

    /// The queue's canonical address.
    pub(crate) fn address(&self, queue: &str) -> Address {
        let transport = match self {
            Self::Embedded(_) => "embedded",
            #[cfg(feature = "sqs")]
            Self::Sqs(_) => "sqs",
        };
        Address { transport, name: queue.to_owned() }
    }

    /// Ends what the trial made.
    pub(crate) async fn close(&self) {
        match self {
            Self::Embedded(embedded) => embedded.close().await,
            #[cfg(feature = "sqs")]
            Self::Sqs(_) => {}
        }
    }
}
