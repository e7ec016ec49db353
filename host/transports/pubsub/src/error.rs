use crate::calls::{Fault, Kind};

/// Why there is no connection to make sources and sinks with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PubsubError {
    /// No project is known, and an id needs one.
    #[error(
        "pubsub has no project: set its project, PUBSUB_PROJECT_ID or GOOGLE_CLOUD_PROJECT, or use full names"
    )]
    NoProject,
    /// The endpoint is no address.
    #[error("pubsub endpoint {0} is no address: it begins with http:// or https://")]
    Endpoint(String),
    /// There are no credentials, or they can't be read.
    #[error("pubsub has no credentials: {0}")]
    Credentials(String),
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
        /// The full name.
        resource: String,
        /// Each difference.
        differences: Vec<String>,
    },
    /// A call is not allowed to these credentials.
    #[error("{resource}: {call} is denied: {text}")]
    Denied {
        /// The full name.
        resource: String,
        /// The call of the API.
        call: &'static str,
        /// What the service said.
        text: String,
    },
    /// Pub/Sub or the credentials can't be reached, or do not answer in time.
    #[error("{resource}: {call} had no answer: {text}")]
    Unavailable {
        /// The full name.
        resource: String,
        /// The call of the API.
        call: &'static str,
        /// What happened.
        text: String,
    },
    /// The service refused a call for another reason.
    #[error("{resource}: {call} failed: {text}")]
    Refused {
        /// The full name.
        resource: String,
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

    pub(crate) fn from_fault(resource: &str, call: &'static str, fault: Fault) -> Self {
        let (resource, text) = (resource.to_owned(), fault.text);
        match fault.kind {
            Kind::Unavailable | Kind::Throttled => Self::Unavailable { resource, call, text },
            Kind::Denied => Self::Denied { resource, call, text },
            Kind::Missing | Kind::Sender => Self::Refused { resource, call, text },
        }
    }
}
