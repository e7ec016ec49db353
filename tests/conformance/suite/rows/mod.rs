//! How each configuration is had: its queues, its source and sinks, and how its messages are sent.

mod embedded;
#[cfg(feature = "pubsub")]
mod pubsub;
#[cfg(feature = "rocketmq")]
pub(crate) mod rocketmq;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(feature = "sqs")]
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;
#[cfg(any(feature = "pubsub", feature = "sqs"))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Address, Outgoing};

use crate::cell::Cell;
use crate::world::World;

use embedded::Embedded;
#[cfg(feature = "pubsub")]
use pubsub::Pubsub;
#[cfg(feature = "rocketmq")]
use rocketmq::Rocketmq;
#[cfg(feature = "sqs")]
use sqs::Sqs;

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
#[cfg_attr(
    not(all(feature = "pubsub", feature = "rocketmq", feature = "sqs")),
    expect(dead_code, reason = "some are for one transport alone")
)]
pub(crate) struct Wants {
    /// M: the broker's own limit, where it has one.
    pub(crate) native: Option<u32>,
    /// The most bytes that the dead-letter destination takes, where that can be set.
    pub(crate) dead_letter_bytes: Option<u32>,
    /// The source's lease is as short as can be, where it is the source that has it.
    pub(crate) brief: bool,
    /// The source does not count, where that depends on how it is made.
    pub(crate) uncounted: bool,
}

/// What a queue says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueFacts {
    pub(crate) native_limit: Option<u32>,
    /// What other clients of the queue keep to, and the broker does not.
    pub(crate) advisory_limit: Option<u32>,
    pub(crate) retention: Option<Duration>,
}

/// What goes wrong between a host and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A publish that fails without having reached its destination.
    Publish,
    /// A publish that reaches its destination, and nobody hears of it.
    Confirmation,
    /// An acknowledgement that fails.
    Ack,
    /// A release that fails.
    Release,
    /// An answer with messages that never arrives.
    Answer,
}

/// What a server's calls are named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operations {
    pub(crate) receive: &'static str,
    /// What one delivery costs.
    pub(crate) delivery: &'static str,
    pub(crate) release: &'static str,
    pub(crate) ack: &'static str,
    pub(crate) publish: &'static str,
}

/// A message as a foreign client sees it.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) body: String,
    metadata: BTreeMap<String, String>,
}

impl Foreign {
    /// A piece of the metadata.
    pub(crate) fn metadata(&self, name: &str) -> &str {
        self.metadata.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// Counts down; whether there was something left.
#[cfg(any(feature = "pubsub", feature = "sqs"))]
fn one_less(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// The broker's side of one trial.
pub(crate) enum Rig {
    Embedded(Embedded),
    #[cfg(feature = "pubsub")]
    Pubsub(Box<Pubsub>),
    #[cfg(feature = "rocketmq")]
    Rocketmq(Box<Rocketmq>),
    #[cfg(feature = "sqs")]
    Sqs(Box<Sqs>),
}

/// Does the same on whichever row it is.
macro_rules! on {
    ($rig:expr, $row:ident => $done:expr) => {
        match $rig {
            Rig::Embedded($row) => $done,
            #[cfg(feature = "pubsub")]
            Rig::Pubsub($row) => $done,
            #[cfg(feature = "rocketmq")]
            Rig::Rocketmq($row) => $done,
            #[cfg(feature = "sqs")]
            Rig::Sqs($row) => $done,
        }
    };
}

impl Rig {
    pub(crate) async fn new(world: &Arc<World>, cell: Cell) -> Result<Self> {
        #[cfg(feature = "pubsub")]
        if cell.configuration.is_pubsub() {
            return Ok(Self::Pubsub(Box::new(Pubsub::new(world, cell.configuration).await?)));
        }
        #[cfg(feature = "rocketmq")]
        if cell.configuration.is_rocketmq() {
            return Ok(Self::Rocketmq(Box::new(Rocketmq::new(world, cell.configuration).await?)));
        }
        #[cfg(feature = "sqs")]
        if !cell.configuration.is_embedded() {
            return Ok(Self::Sqs(Box::new(Sqs::new(world, cell).await?)));
        }
        Ok(Self::Embedded(Embedded::new(world, cell.configuration).await?))
    }

    /// Makes the queues of a channel: its source, its two destinations, and what else it wants.
    pub(crate) async fn create(&self, names: &Names, wants: Wants) -> Result<()> {
        on!(self, row => row.create(names, wants).await)
    }

    /// Makes one more queue.
    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        on!(self, row => row.create_queue(queue).await)
    }

    /// Whether a queue is there.
    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        on!(self, row => row.exists(queue).await)
    }

    /// The source of a channel, with transport objects of its own.
    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        on!(self, row => row.source(names).await)
    }

    /// A destination as a host reads it: as a source of rejected copies.
    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        on!(self, row => row.reader(queue).await)
    }

    /// A queue that a host publishes to. It need not be there.
    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        on!(self, row => row.sink(queue).await)
    }

    /// A queue as a case itself looks at it, past the proxy: copies are unpacked.
    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        on!(self, row => row.look(queue).await)
    }

    /// How full a queue is, asked past the proxy.
    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        on!(self, row => row.gauge(queue).await)
    }

    /// Sends a message the way that this configuration's messages come.
    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        on!(self, row => row.send(names, message).await)
    }

    /// Sends a message with a body that is said to be encoded as this configuration's may be, and is not.
    pub(crate) async fn send_undecodable(&self, names: &Names, message: Outgoing) -> Result<()> {
        #[cfg(feature = "rocketmq")]
        if let Self::Rocketmq(rocketmq) = self {
            return rocketmq.send_compressed(names, message).await;
        }
        let headers = [("pumphouse-encoding", "base64")].into_iter().collect();
        self.send(names, Outgoing { headers, ..message }).await
    }

    /// As if the host were started anew, as far as a broker of this configuration can outlive it.
    pub(crate) async fn restart(&self) -> Result<()> {
        on!(self, row => row.restart().await)
    }

    /// What the source itself says; nothing where queues have no settings.
    pub(crate) async fn facts(&self, names: &Names) -> Result<QueueFacts> {
        on!(self, row => row.facts(names).await)
    }

    /// Calls that hosts made so far, by operation; none where the broker is part of the host.
    pub(crate) fn calls(&self) -> Option<BTreeMap<String, u64>> {
        match self {
            Self::Embedded(_) => None,
            #[cfg(feature = "pubsub")]
            Self::Pubsub(pubsub) => Some(pubsub.calls()),
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(rocketmq) => Some(rocketmq.calls()),
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => Some(sqs.calls()),
        }
    }

    /// What these calls are named; none where the broker is part of the host.
    pub(crate) fn operations(&self) -> Option<Operations> {
        match self {
            Self::Embedded(_) => None,
            #[cfg(feature = "pubsub")]
            Self::Pubsub(pubsub) => Some(pubsub.operations()),
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(_) => Some(Rocketmq::OPERATIONS),
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => Some(sqs.operations()),
        }
    }

    /// The next calls of hosts about a queue go wrong on their way. False where there is no way to a server: what
    /// goes wrong does so at the port then.
    #[cfg_attr(
        not(any(feature = "pubsub", feature = "rocketmq", feature = "sqs")),
        expect(unused_variables, reason = "nothing is called")
    )]
    pub(crate) fn spoil(&self, fault: Fault, queue: &str, times: usize) -> bool {
        match self {
            Self::Embedded(_) => false,
            #[cfg(feature = "pubsub")]
            Self::Pubsub(pubsub) => {
                pubsub.spoil(fault, queue, times as u64);
                true
            }
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(rocketmq) => {
                rocketmq.spoil(fault, queue, times as u64);
                true
            }
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => {
                sqs.spoil(fault, queue, times as u64);
                true
            }
        }
    }

    /// The one message of a queue, by a client that knows nothing of ours; none where no other can open it.
    #[cfg_attr(
        not(any(feature = "pubsub", feature = "rocketmq", feature = "sqs")),
        expect(unused_variables, reason = "no queue can be opened")
    )]
    pub(crate) async fn foreign(&self, queue: &str) -> Result<Option<Foreign>> {
        match self {
            Self::Embedded(_) => Ok(None),
            #[cfg(feature = "pubsub")]
            Self::Pubsub(pubsub) => pubsub.foreign(queue).await.map(Some),
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(rocketmq) => rocketmq.foreign(queue).await.map(Some),
            #[cfg(feature = "sqs")]
            Self::Sqs(sqs) => sqs.foreign(queue).await.map(Some),
        }
    }

    /// How often the transport allocates when it reads a count; none where there is no transport.
    pub(crate) fn allocations_of_counting(&self) -> Result<Option<u64>> {
        match self {
            Self::Embedded(_) => Ok(None),
            #[cfg(feature = "pubsub")]
            Self::Pubsub(_) => pubsub::allocations_of_counting(7).map(Some),
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(_) => rocketmq::allocations_of_counting(7).map(Some),
            #[cfg(feature = "sqs")]
            Self::Sqs(_) => sqs::allocations_of_counting("7").map(Some),
        }
    }

    /// The queue's canonical address.
    pub(crate) fn address(&self, queue: &str) -> Address {
        let transport = match self {
            Self::Embedded(_) => "embedded",
            #[cfg(feature = "pubsub")]
            Self::Pubsub(_) => "pubsub",
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(_) => "rocketmq",
            #[cfg(feature = "sqs")]
            Self::Sqs(_) => "sqs",
        };
        Address { transport, name: queue.to_owned() }
    }

    /// Whether the broker moved a message of the source to a place of its own choice.
    #[cfg_attr(
        not(feature = "rocketmq"),
        expect(unused_variables, clippy::unused_async, reason = "no other broker chooses")
    )]
    pub(crate) async fn moved(&self, names: &Names) -> Result<bool> {
        match self {
            #[cfg(feature = "rocketmq")]
            Self::Rocketmq(rocketmq) => rocketmq.moved(names).await,
            _ => Ok(false),
        }
    }

    /// Ends what the trial made.
    pub(crate) async fn close(&self) {
        on!(self, row => row.close().await);
    }
}
