use crate::calls::{Fault, Kind};

/// Why there is no connection to make sources and sinks with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqsError {
    /// No region is known.
    #[error("sqs has no region: set its region, AWS_REGION, or a region in the profile")]
    NoRegion,
    /// The endpoint is no address.
    #[error("sqs endpoint {0} is no address: it begins with http:// or https://")]
    Endpoint(String),
}

/// Why a source or a sink could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// The configuration asks for what can't be. Nothing was called.
    #[error("queue {queue}: {}", problems.join("; "))]
    Invalid {
        /// As configured.
        queue: String,
        /// Each thing that can't be.
        problems: Vec<String>,
    },
    /// What exists is not what the configuration says, or is missing. Each difference is named.
    #[error("queue {queue} differs from the configuration: {}", differences.join("; "))]
    Differs {
        /// As configured.
        queue: String,
        /// Each difference.
        differences: Vec<String>,
    },
    /// A call is not allowed to these credentials.
    #[error("queue {queue}: {call} is denied: {text}")]
    Denied {
        /// As configured.
        queue: String,
        /// The call of the API.
        call: &'static str,
        /// What the service said.
        text: String,
    },
    /// SQS, SNS or the credentials can't be reached, or do not answer in time.
    #[error("queue {queue}: {call} had no answer: {text}")]
    Unavailable {
        /// As configured.
        queue: String,
        /// The call of the API.
        call: &'static str,
        /// What happened.
        text: String,
    },
    /// The service refused a call for another reason.
    #[error("queue {queue}: {call} failed: {text}")]
    Refused {
        /// As configured.
        queue: String,
        /// The call of the API.
        call: &'static str,
        /// What the service said.
        text: String,
    },
}

impl ProvisionError {
    /// Whether the same call may succeed later: a pump waits then; everything else is for its operator.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn from_fault(queue: &str, call: &'static str, fault: Fault) -> Self {
        let (queue, text) = (queue.to_owned(), fault.text);
        match fault.kind {
            Kind::Unavailable | Kind::Throttled => Self::Unavailable { queue, call, text },
            Kind::Denied => Self::Denied { queue, call, text },
            Kind::Missing | Kind::Gone | Kind::Sender => Self::Refused { queue, call, text },
        }
    }
}
