//! What the table has cells for: a configuration, a variant, and the servers that stand behind a cell.

use std::fmt;
use std::time::Duration;

use pumphouse_contract::ports::LeaseSetting;

/// One row of the conformance matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Configuration {
    SqsStandard,
    SqsFifo,
    SnsRaw,
    SnsEnveloped,
    SnsFifo,
    PubsubPull,
    PubsubPullOrdered,
    PubsubStream,
    PubsubStreamOrdered,
    RocketmqNormal,
    RocketmqFifo,
    Memory,
    Durable,
}

impl Configuration {
    pub(crate) const ALL: [Self; 13] = [
        Self::SqsStandard,
        Self::SqsFifo,
        Self::SnsRaw,
        Self::SnsEnveloped,
        Self::SnsFifo,
        Self::PubsubPull,
        Self::PubsubPullOrdered,
        Self::PubsubStream,
        Self::PubsubStreamOrdered,
        Self::RocketmqNormal,
        Self::RocketmqFifo,
        Self::Memory,
        Self::Durable,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SqsStandard => "SQS standard",
            Self::SqsFifo => "SQS FIFO",
            Self::SnsRaw => "SNS→SQS standard raw",
            Self::SnsEnveloped => "SNS→SQS standard enveloped",
            Self::SnsFifo => "SNS→SQS FIFO",
            Self::PubsubPull => "Pub/Sub pull",
            Self::PubsubPullOrdered => "Pub/Sub pull ordered",
            Self::PubsubStream => "Pub/Sub stream",
            Self::PubsubStreamOrdered => "Pub/Sub stream ordered",
            Self::RocketmqNormal => "RocketMQ normal",
            Self::RocketmqFifo => "RocketMQ FIFO",
            Self::Memory => "embedded memory",
            Self::Durable => "embedded durable",
        }
    }

    pub(crate) fn is_embedded(self) -> bool {
        matches!(self, Self::Memory | Self::Durable)
    }

    pub(crate) fn is_fifo(self) -> bool {
        matches!(self, Self::SqsFifo | Self::SnsFifo)
    }

    #[cfg(feature = "sqs")]
    pub(crate) fn has_topic(self) -> bool {
        matches!(self, Self::SnsRaw | Self::SnsEnveloped | Self::SnsFifo)
    }

    pub(crate) fn is_pubsub(self) -> bool {
        self.is_pubsub_ordered() || matches!(self, Self::PubsubPull | Self::PubsubStream)
    }

    pub(crate) fn is_pubsub_ordered(self) -> bool {
        matches!(self, Self::PubsubPullOrdered | Self::PubsubStreamOrdered)
    }

    #[cfg(feature = "pubsub")]
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::PubsubStream | Self::PubsubStreamOrdered)
    }

    pub(crate) fn is_rocketmq(self) -> bool {
        matches!(self, Self::RocketmqNormal | Self::RocketmqFifo)
    }

    /// Whether this build has what the row needs.
    pub(crate) fn is_built(self) -> bool {
        match self {
            Self::Memory | Self::Durable => true,
            _ if self.is_pubsub() => cfg!(feature = "pubsub"),
            _ if self.is_rocketmq() => cfg!(feature = "rocketmq"),
            _ => cfg!(feature = "sqs"),
        }
    }

    /// The servers that it is shown against. ElasticMQ has no SNS.
    pub(crate) fn servers(self) -> &'static [Server] {
        match self {
            Self::SqsStandard | Self::SqsFifo => &[Server::Fauxqs, Server::ElasticMq],
            Self::SnsRaw | Self::SnsEnveloped | Self::SnsFifo => &[Server::Fauxqs],
            Self::PubsubPull
            | Self::PubsubPullOrdered
            | Self::PubsubStream
            | Self::PubsubStreamOrdered => &[Server::Emulator],
            Self::RocketmqNormal | Self::RocketmqFifo => &[Server::RocketMq],
            Self::Memory | Self::Durable => &[Server::None],
        }
    }
}

/// What the cases have to know of a row.
impl Configuration {
    /// Whether C-17 holds. Of an ordered stream the service sends a key's followers again with their head, so that
    /// a count says little about its own message.
    pub(crate) fn has_guard(self) -> bool {
        self != Self::PubsubStreamOrdered
    }

    /// Whether a destination knows a copy again that it has already.
    pub(crate) fn deduplicates(self) -> bool {
        self.is_embedded() || self.is_fifo()
    }

    /// Whether every body can be handed over as it is.
    pub(crate) fn decodes_everything(self) -> bool {
        self.is_embedded() || self.is_pubsub()
    }

    /// Whether headers are more than text.
    pub(crate) fn has_typed_headers(self) -> bool {
        !self.is_pubsub() && !self.is_rocketmq()
    }

    /// As many headers as a message of the broker may have, where there is a limit. RocketMQ's is 32 KiB for all of
    /// them together.
    pub(crate) fn most_headers(self) -> usize {
        if self.is_embedded() {
            40
        } else if self.is_pubsub() {
            100
        } else if self.is_rocketmq() {
            1_000
        } else {
            10
        }
    }

    /// The broker's own limit nearest to the one that is wished for. Pub/Sub takes five at least.
    pub(crate) fn native_limit(self, wished: u32) -> u32 {
        if self.is_pubsub() { wished.max(5) } else { wished }
    }

    /// Whether the broker moves a message by itself that was delivered too often.
    pub(crate) fn has_native_limit(self) -> bool {
        !self.is_embedded() && !self.is_rocketmq()
    }

    /// Whether the servers move what is beyond the broker's own limit. The emulator of Pub/Sub fails at it where a
    /// subscription is ordered: it has an error of its own at every pull from then on, and the message stays.
    pub(crate) fn native_moves(self) -> bool {
        self.has_native_limit() && !self.is_pubsub_ordered()
    }

    /// The shortest lease that there is. A stream's is its own, and longer than what was asked for by the half
    /// minute that a pushed message may be held.
    pub(crate) fn shortest_lease(self) -> Duration {
        Duration::from_secs(match self {
            Self::PubsubPull | Self::PubsubPullOrdered => 10,
            Self::PubsubStream | Self::PubsubStreamOrdered => 40,
            _ => 2,
        })
    }

    pub(crate) fn lease_setting(self) -> LeaseSetting {
        match self {
            Self::PubsubPull | Self::PubsubPullOrdered => LeaseSetting::OnSource,
            _ => LeaseSetting::OnReceive,
        }
    }

    /// Whether order keeps a message back whose lease lapsed. Such a lapse is shown with one that has no key.
    pub(crate) fn withholds_lapsed(self) -> bool {
        self.is_pubsub_ordered()
    }

    /// Whether a destination tells its depth.
    pub(crate) fn tells_depth(self) -> bool {
        !self.is_pubsub() && !self.is_rocketmq()
    }
}

/// What a trial talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Server {
    /// The broker is part of the host.
    None,
    Fauxqs,
    ElasticMq,
    /// Google's emulator of Pub/Sub.
    Emulator,
    /// Apache RocketMQ itself.
    RocketMq,
}

/// The two dispatch modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Variant {
    Sequential,
    Concurrent,
}

impl Variant {
    pub(crate) const BOTH: [Self; 2] = [Self::Sequential, Self::Concurrent];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Concurrent => "concurrent",
        }
    }
}

/// What one trial runs against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) configuration: Configuration,
    pub(crate) variant: Variant,
    pub(crate) server: Server,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.configuration.name(), self.variant.name())?;
        match self.server {
            Server::None => Ok(()),
            Server::Fauxqs => f.write_str("/fauxqs"),
            Server::ElasticMq => f.write_str("/elasticmq"),
            Server::Emulator => f.write_str("/emulator"),
            Server::RocketMq => f.write_str("/rocketmq"),
        }
    }
}
