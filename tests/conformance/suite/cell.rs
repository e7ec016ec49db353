//! What the table has cells for: a configuration, a variant, and the servers that stand behind a cell.

use std::fmt;

/// One row of the conformance matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Configuration {
    SqsStandard,
    SqsFifo,
    SnsRaw,
    SnsEnveloped,
    SnsFifo,
    Memory,
    Durable,
}

impl Configuration {
    pub(crate) const ALL: [Self; 7] = [
        Self::SqsStandard,
        Self::SqsFifo,
        Self::SnsRaw,
        Self::SnsEnveloped,
        Self::SnsFifo,
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

    /// The servers that it is shown against. ElasticMQ has no SNS.
    pub(crate) fn servers(self) -> &'static [Server] {
        match self {
            Self::SqsStandard | Self::SqsFifo => &[Server::Fauxqs, Server::ElasticMq],
            Self::SnsRaw | Self::SnsEnveloped | Self::SnsFifo => &[Server::Fauxqs],
            Self::Memory | Self::Durable => &[Server::None],
        }
    }
}

/// What a trial talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Server {
    /// The broker is part of the host.
    None,
    Fauxqs,
    ElasticMq,
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
        }
    }
}
