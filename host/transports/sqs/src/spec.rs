use std::time::Duration;

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Envelope {
    /// The message itself. A topic's subscription has raw delivery on.
    #[default]
    Raw,
    /// The JSON envelope of SNS with the message inside. A body that is none can't be decoded.
    Enveloped,
}

/// What is done about queues, topics and subscriptions before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provision {
    /// What is missing is made; what exists is checked as by `Validate`, and nothing of it is edited.
    Create,
    /// Everything must exist and fit; every difference is named.
    #[default]
    Validate,
    /// Nothing is asked but the URL of a queue that is given by name or ARN.
    Assume,
}

/// The queue's own redrive policy. A rejection destination never implies one (C-15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeRedrive {
    /// M: the most deliveries, the first included, before SQS moves a message itself.
    pub max_receive_count: u32,
    /// Where to: name, URL or ARN of a queue of the same kind.
    pub dead_letter: String,
}

/// A queue to read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// Name, URL or ARN. A name that ends in `.fifo` is a FIFO queue.
    pub queue: String,
    /// Name or ARN of the SNS topic that feeds it.
    pub topic: Option<String>,
    /// What bodies hold.
    pub envelope: Envelope,
    /// What is done before it is read.
    pub provision: Provision,
    /// The redrive policy that it must have; none leaves a policy that is found as it is.
    pub native: Option<NativeRedrive>,
    /// Whether rejected copies are known again here (C-7).
    pub rejected: bool,
    /// How long it keeps a message, from 60 s to 14 days; none leaves it as it is.
    pub retention: Option<Duration>,
}

impl SourceSpec {
    /// A queue that is fed directly, without demands of its own.
    #[must_use]
    pub fn new(queue: impl Into<String>, provision: Provision) -> Self {
        Self {
            queue: queue.into(),
            topic: None,
            envelope: Envelope::Raw,
            provision,
            native: None,
            rejected: false,
            retention: None,
        }
    }
}

/// A queue to publish to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSpec {
    /// Name, URL or ARN. A name that ends in `.fifo` is a FIFO queue.
    pub queue: String,
    /// What is done at start-up. A publish never makes the queue.
    pub provision: Provision,
    /// How long it keeps a message, from 60 s to 14 days. None: a queue that is made keeps it for 14 days, one
    /// that exists stays as it is.
    pub retention: Option<Duration>,
}

impl SinkSpec {
    /// A queue without demands of its own.
    #[must_use]
    pub fn new(queue: impl Into<String>, provision: Provision) -> Self {
        Self { queue: queue.into(), provision, retention: None }
    }
}

/// What a queue itself says that the findings need (F-2, F-7).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueFacts {
    /// M, where there is a redrive policy.
    pub native_limit: Option<u32>,
    /// The ARN of the queue that the policy moves messages to.
    pub native_dead_letter: Option<String>,
    /// How long it keeps a message.
    pub retention: Option<Duration>,
}
