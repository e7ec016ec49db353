use crate::calls::{Fault, Meaning};

/// Why there is no connection to make sources and sinks with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RocketmqError {
    /// No name server.
    #[error("rocketmq has no name server: set name_servers to a list of host:port")]
    NoNameServer,
    /// The client can't be started.
    #[error("rocketmq's client can't be started: {0}")]
    Client(String),
}

/// Why a source or a sink could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// The configuration asks for what can't be. Nothing was called.
    #[error("{resource}: {}", problems.join("; "))]
    Invalid {
        /// As configured.
        resource: String,
        /// Each thing that can't be.
        problems: Vec<String>,
    },
    /// What exists is not what the configuration says, or is missing. Each difference is named.
    #[error("{resource} differs from the configuration: {}", differences.join("; "))]
    Differs {
        /// The name on the wire.
        resource: String,
        /// Each difference.
        differences: Vec<String>,
    },
    /// A request is not allowed to this access key.
    #[error("{resource}: {call} is denied: {text}")]
    Denied {
        /// The name on the wire.
        resource: String,
        /// The request.
        call: &'static str,
        /// What the broker said.
        text: String,
    },
    /// Name server or broker can't be reached, or do not answer in time.
    #[error("{resource}: {call} had no answer: {text}")]
    Unavailable {
        /// The name on the wire.
        resource: String,
        /// The request.
        call: &'static str,
        /// What happened.
        text: String,
    },
    /// The broker refused a request for another reason.
    #[error("{resource}: {call} failed: {text}")]
    Refused {
        /// The name on the wire.
        resource: String,
        /// The request.
        call: &'static str,
        /// What the broker said.
        text: String,
    },
}

impl ProvisionError {
    /// Whether the same call may succeed later: a pump waits then; everything else is for its operator.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn from_fault(resource: &str, call: &'static str, fault: Fault) -> Self {
        let (resource, text) = (resource.to_owned(), fault.text);
        match fault.meaning {
            Meaning::Unavailable | Meaning::Busy => Self::Unavailable { resource, call, text },
            Meaning::Denied => Self::Denied { resource, call, text },
            Meaning::Missing | Meaning::Refused => Self::Refused { resource, call, text },
        }
    }
}
