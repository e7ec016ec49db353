use std::time::Duration;

/// What a topic promises, as RocketMQ 5 calls it (`message.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// No order.
    #[default]
    Normal,
    /// Messages of one group come in order.
    Fifo,
}

/// What is done about topics and consumer groups before they are used.
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

/// A topic to read from, as a consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// The topic, without the namespace.
    pub topic: String,
    /// The consumer group, without the namespace.
    pub group: String,
    /// What the topic promises.
    pub kind: Kind,
    /// Which tags are read, as `a || b`; none for all.
    pub tags: Option<String>,
    /// How many queues the topic has on each broker where it is made.
    pub queues: u32,
    /// What is done before it is read.
    pub provision: Provision,
    /// How long a message must be ours.
    pub lease: Duration,
    /// Whether rejected copies are known again here (C-7).
    pub rejected: bool,
}

impl SourceSpec {
    /// What [`SourceSpec::queues`] is where nothing else is said.
    pub const QUEUES: u32 = 8;

    /// A normal topic without demands of its own.
    #[must_use]
    pub fn new(topic: impl Into<String>, group: impl Into<String>, provision: Provision) -> Self {
        Self {
            topic: topic.into(),
            group: group.into(),
            kind: Kind::Normal,
            tags: None,
            queues: Self::QUEUES,
            provision,
            lease: Duration::from_secs(60),
            rejected: false,
        }
    }
}

/// A topic to publish to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSpec {
    /// The topic, without the namespace.
    pub topic: String,
    /// What the topic promises.
    pub kind: Kind,
    /// How many queues it has on each broker where it is made.
    pub queues: u32,
    /// What is done at start-up. A publish never makes the topic.
    pub provision: Provision,
}

impl SinkSpec {
    /// A normal topic without demands of its own.
    #[must_use]
    pub fn new(topic: impl Into<String>, provision: Provision) -> Self {
        Self { topic: topic.into(), kind: Kind::Normal, queues: SourceSpec::QUEUES, provision }
    }
}

/// What the brokers say of a topic and a group that the findings need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupFacts {
    /// The group's own retry maximum and 1, which are deliveries. The broker does not act on it where messages are
    /// received by POP; other clients of the group do.
    pub retry_limit: Option<u32>,
    /// What the topic promises; none where the broker does not say.
    pub kind: Option<Kind>,
}
