//! Queues, topics and subscriptions: how they are spelled, and when two spellings are one place.

mod pubsub;
mod rocketmq;
mod sqs;

use std::fmt;

use pumphouse_contract::ports::Ordering;
use toml_span::value::Value;

use crate::diagnostic::Code;
use crate::keys::Kind;
use crate::report::{At, Note};
use crate::section::{Reader, Section};
use crate::values::{Bad, text};
use crate::words::{Envelope, TopicKind};

pub use pubsub::{PubsubPlace, PubsubSource, PubsubTarget, Redelivery, ResourceRef};
pub(crate) use pubsub::{member, project, topic};
pub(crate) use rocketmq::{LONGEST_GROUP, LONGEST_TOPIC, name_servers, namespace};
pub use rocketmq::{RocketmqPlace, RocketmqReader};
pub(crate) use sqs::sqs_queue;
pub use sqs::{QueueRef, SqsPlace, TopicRef};

/// The longest name of an embedded queue, in bytes.
const LONGEST_EMBEDDED: usize = 120;

/// Where messages come from or go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A queue of the embedded broker.
    Embedded {
        /// Its name.
        queue: String,
    },
    /// A queue of Amazon SQS.
    Sqs(SqsPlace),
    /// A subscription or a topic of Google Pub/Sub.
    Pubsub(PubsubPlace),
    /// A topic of Apache RocketMQ.
    Rocketmq(RocketmqPlace),
}

/// What a place is for. Pub/Sub reads from a subscription and publishes to a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    /// With what a topic of RocketMQ promises where it is not said.
    Destination(TopicKind),
}

impl Place {
    /// The transport's key in the configuration.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Embedded { .. } => "embedded",
            Self::Sqs(_) => "sqs",
            Self::Pubsub(_) => "pubsub",
            Self::Rocketmq(_) => "rocketmq",
        }
    }

    /// The queue, the subscription of a source or the topic as it stands in the file; what `originalTopic` says of
    /// a source.
    #[must_use]
    pub fn spelled(&self) -> &str {
        match self {
            Self::Embedded { queue } => queue,
            Self::Sqs(place) => &place.queue.spelled,
            Self::Pubsub(PubsubPlace::Source(source)) => &source.subscription.spelled,
            Self::Pubsub(PubsubPlace::Target(target)) => &target.topic.spelled,
            Self::Rocketmq(place) => &place.topic,
        }
    }

    /// The order that it keeps (S-6).
    #[must_use]
    pub fn ordering(&self) -> Ordering {
        let ordered = match self {
            Self::Embedded { .. } => true,
            Self::Sqs(place) => place.queue.is_fifo(),
            Self::Pubsub(PubsubPlace::Source(source)) => source.ordered,
            Self::Pubsub(PubsubPlace::Target(_)) => false,
            Self::Rocketmq(place) => place.kind == TopicKind::Fifo,
        };
        if ordered { Ordering::Key } else { Ordering::None }
    }

    /// What it is, where it is a subscription of Pub/Sub that is read.
    #[must_use]
    pub fn pubsub_source(&self) -> Option<&PubsubSource> {
        match self {
            Self::Pubsub(PubsubPlace::Source(source)) => Some(source),
            Self::Pubsub(PubsubPlace::Target(_))
            | Self::Embedded { .. }
            | Self::Sqs(_)
            | Self::Rocketmq(_) => None,
        }
    }

    /// What it is, where it is a topic of RocketMQ.
    #[must_use]
    pub fn rocketmq(&self) -> Option<&RocketmqPlace> {
        match self {
            Self::Rocketmq(place) => Some(place),
            Self::Embedded { .. } | Self::Sqs(_) | Self::Pubsub(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport(), self.spelled())?;
        match self {
            Self::Sqs(SqsPlace { topic: Some(topic), envelope, .. }) => {
                write!(f, " on topic {} ({envelope})", topic.spelled)
            }
            Self::Sqs(SqsPlace { envelope: Envelope::Enveloped, .. }) => {
                f.write_str(" (enveloped)")
            }
            Self::Pubsub(PubsubPlace::Source(source)) => source.fmt_rest(f),
            Self::Pubsub(PubsubPlace::Target(PubsubTarget { subscription: Some(one), .. })) => {
                write!(f, " with subscription {}", one.spelled)
            }
            Self::Rocketmq(place) => place.fmt_rest(f),
            Self::Sqs(_) | Self::Embedded { .. } | Self::Pubsub(PubsubPlace::Target(_)) => Ok(()),
        }
    }
}

/// The place that a `source`, `dead_letter` or `invalid_message` names; none where it is absent or wrong.
pub(crate) fn read(section: &Section<'_>, role: Role) -> Option<Place> {
    let on = |key: &'static str, read: &dyn Fn(&Section<'_>) -> Option<Place>| {
        let section = section.below(key);
        section.is_present().then(|| (key, read(&section)))
    };
    let named = [
        on("embedded", &read_embedded),
        on("sqs", &sqs::read),
        on("pubsub", &|section| pubsub::read(section, role)),
        on("rocketmq", &|section| rocketmq::read(section, role)),
    ];
    let mut named = named.into_iter().flatten();
    let first = named.next();
    let others: Vec<&str> = named.map(|(key, _)| key).collect();
    for other in &others {
        let message = "two transports for one place: keep one of them";
        section.error(other, At::Key, Note::new(Code::Contradiction, message));
    }
    match first {
        Some((_, place)) => place.filter(|_| others.is_empty()),
        None => {
            if section.is_present() && section.names().is_empty() {
                section.error("", At::Key, missing("no transport is named", role));
            }
            None
        }
    }
}

/// The note about a place that is not said.
pub(crate) fn missing(message: &str, role: Role) -> Note {
    let (pubsub, group) = match role {
        Role::Source => ("subscription", ", rocketmq.group = \"NAME\""),
        Role::Destination(_) => ("topic", ""),
    };
    Note::new(Code::Missing, message).allowed(format!(
        "`{{ embedded.queue = \"NAME\" }}`, `{{ sqs.queue = \"NAME\" }}`, `{{ pubsub.{pubsub} = \"NAME\" }}` or `{{ rocketmq.topic = \"NAME\"{group} }}`"
    ))
}

fn read_embedded(section: &Section<'_>) -> Option<Place> {
    let queue = required(section, "queue", embedded_queue)?;
    Some(Place::Embedded { queue })
}

/// The key that gives a place its name.
fn required<T>(section: &Section<'_>, key: &str, read: Reader<T>) -> Option<T> {
    if section.has(key) {
        return section.read(key, read);
    }
    let message = format!("`{key}` is missing: the place has no name");
    section.error(key, At::Key, Note::new(Code::Missing, message));
    None
}

/// A queue of the embedded broker.
pub(crate) fn embedded_queue(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let name = text(value, kind)?;
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if name.len() > LONGEST_EMBEDDED || name.contains(odd) {
        return Err(Bad::value(format!(
            "{name:?} is no queue name: letters, digits, `-`, `_` and `.`, at most {LONGEST_EMBEDDED}"
        )));
    }
    Ok(name)
}
