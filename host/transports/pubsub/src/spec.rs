use std::time::Duration;

/// How messages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// One `Pull` after another. The lease is the subscription's acknowledgement deadline.
    Pull,
    /// `StreamingPull`: the service pushes. The lease is the stream's own.
    #[default]
    Stream,
}

/// What is done about topics and subscriptions before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provision {
    /// What is missing is made; what exists is checked as by `Validate`, and nothing of it is edited.
    Create,
    /// Everything must exist and fit; every difference is named.
    #[default]
    Validate,
    /// Nothing is called.
    Assume,
}

/// The subscription's own dead-letter policy. A rejection destination never implies one (C-15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeDeadLetter {
    /// M: the most deliveries, the first included, before Pub/Sub forwards a message itself; 5 to 100.
    pub max_delivery_attempts: u32,
    /// Where to: a topic's id or full name.
    pub dead_letter: String,
    /// Who is made a publisher of that topic; none for the Pub/Sub service agent of the project.
    pub publisher_member: Option<String>,
    /// Who is made a subscriber of the source; none for the Pub/Sub service agent of the project.
    pub subscriber_member: Option<String>,
}

/// The subscription's own retry policy: how long Pub/Sub itself waits after a release or a lapse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The shortest wait; at most 600 s.
    pub min: Duration,
    /// The longest wait; at most 600 s.
    pub max: Duration,
}

/// A subscription to read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// Id, or `projects/P/subscriptions/S`.
    pub subscription: String,
    /// Id, or `projects/P/topics/T`, of the topic that feeds it. Needed where it is to be made.
    pub topic: Option<String>,
    /// How messages are asked for.
    pub mode: Mode,
    /// Whether messages of one ordering key come in order.
    pub ordered: bool,
    /// What is done before it is read.
    pub provision: Provision,
    /// How long a message must be ours, 10 to 600 s.
    pub lease: Duration,
    /// The dead-letter policy that it must have; none leaves a policy that is found as it is.
    pub native: Option<NativeDeadLetter>,
    /// The retry policy that it must have; none leaves a policy that is found as it is.
    pub retry: Option<RetryPolicy>,
    /// Whether rejected copies are known again here (C-7).
    pub rejected: bool,
    /// The most messages handled at once: what a stream asks the service to have outstanding.
    pub concurrency: usize,
    /// The most messages that a stream holds beyond those that are handled.
    pub held: usize,
}

impl SourceSpec {
    /// What [`SourceSpec::held`] is where nothing else is said.
    pub const HELD: usize = 1_000;

    /// A stream without order and without demands of its own.
    #[must_use]
    pub fn new(subscription: impl Into<String>, provision: Provision) -> Self {
        Self {
            subscription: subscription.into(),
            topic: None,
            mode: Mode::Stream,
            ordered: false,
            provision,
            lease: Duration::from_secs(60),
            native: None,
            retry: None,
            rejected: false,
            concurrency: 16,
            held: Self::HELD,
        }
    }
}

/// A topic to publish to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSpec {
    /// Id, or `projects/P/topics/T`.
    pub topic: String,
    /// Id, or full name, of the subscription that keeps what is published. Under `Create` it is made where the
    /// topic has none; without a name it is called as the topic.
    pub subscription: Option<String>,
    /// What is done at start-up. A publish never makes the topic.
    pub provision: Provision,
}

impl SinkSpec {
    /// A topic without demands of its own.
    #[must_use]
    pub fn new(topic: impl Into<String>, provision: Provision) -> Self {
        Self { topic: topic.into(), subscription: None, provision }
    }
}

/// What a subscription itself says that the findings need (F-2, F-3, F-7).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionFacts {
    /// M, where there is a dead-letter policy. Without one no delivery count is reported (C-8).
    pub native_limit: Option<u32>,
    /// The full name of the topic that the policy forwards to.
    pub native_dead_letter: Option<String>,
    /// How long it keeps a message.
    pub retention: Option<Duration>,
    /// Whether exactly-once delivery is on.
    pub exactly_once: bool,
    /// Whether messages of one ordering key come in order.
    pub ordered: bool,
    /// The acknowledgement deadline.
    pub ack_deadline: Duration,
}
