//! Every key there is: where it stands, what it takes, what stands for it where it is absent.
//!
//! Reading, the search for the nearest known name and the documentation go by this table alone.

use std::fmt;
use std::time::Duration;

pub use crate::table::KEYS;
use crate::units::{Readable, ReadableSize};

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number within bounds, both included.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// A duration within bounds in milliseconds, both included.
    Duration {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
    },
    /// A size within bounds in bytes, both included.
    Size {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// One word of a list.
    Word(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
    /// A path; a relative one begins at the configuration file's directory.
    Path,
    /// An IP address and a port, or `off`.
    Listen,
    /// An `http` or `https` address without a user or a password.
    Url,
    /// A secret by reference.
    Secret,
    /// A text, or a secret by reference.
    Setting,
    /// A handler's full name.
    Handler,
    /// A queue of the embedded broker.
    EmbeddedQueue,
    /// A queue of Amazon SQS.
    SqsQueue,
    /// A topic of Amazon SNS.
    SnsTopic,
    /// A project of Google Cloud.
    Project,
    /// A topic of Google Pub/Sub.
    PubsubTopic,
    /// A subscription of Google Pub/Sub.
    PubsubSubscription,
    /// A member of an IAM policy.
    Member,
    /// Name servers of RocketMQ.
    NameServers,
    /// A namespace of RocketMQ.
    RocketmqNamespace,
    /// A topic of RocketMQ.
    RocketmqTopic,
    /// A consumer group of RocketMQ.
    ConsumerGroup,
    /// Tags of RocketMQ's messages.
    Tags,
    /// What makes two messages one.
    DeduplicationKey,
    /// A host of outgoing requests, or a pattern of hosts.
    HttpHost,
    /// Methods of outgoing requests.
    Methods,
}

impl fmt::Display for Kind {
    /// What is allowed, as the documentation and the diagnostics say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Integer { min: i64::MIN, .. } => f.write_str("integer"),
            Self::Integer { min, max } => write!(f, "integer from {min} to {max}"),
            Self::Duration { min, max } => write!(
                f,
                "duration from {} to {}",
                Readable(Duration::from_millis(*min)),
                Readable(Duration::from_millis(*max))
            ),
            Self::Size { min, max } => {
                write!(f, "size from {} to {}", ReadableSize(*min), ReadableSize(*max))
            }
            Self::Word(words) => {
                let quoted: Vec<String> =
                    words.iter().map(|word| format!("`\"{word}\"`")).collect();
                f.write_str(&quoted.join(", "))
            }
            Self::Text => f.write_str("text"),
            Self::Path => f.write_str("path"),
            Self::Listen => f.write_str("IP address and port, or `\"off\"`"),
            Self::Url => f.write_str("http or https URL"),
            Self::Secret => f.write_str("`{ env = \"NAME\" }` or `{ file = \"PATH\" }`"),
            Self::Setting => f.write_str("text, or `{ env = \"NAME\" }` or `{ file = \"PATH\" }`"),
            Self::Handler => f.write_str("`\"TENANT/HANDLER\"`"),
            Self::EmbeddedQueue => f.write_str("queue name"),
            Self::SqsQueue => f.write_str("queue name, URL or ARN"),
            Self::SnsTopic => f.write_str("topic name or ARN"),
            Self::Project => f.write_str("project id"),
            Self::PubsubTopic => f.write_str("topic id or `projects/PROJECT/topics/ID`"),
            Self::PubsubSubscription => {
                f.write_str("subscription id or `projects/PROJECT/subscriptions/ID`")
            }
            Self::Member => f.write_str("IAM member, such as `serviceAccount:NAME`"),
            Self::NameServers => f.write_str("list of `\"HOST:PORT\"`"),
            Self::RocketmqNamespace => f.write_str("namespace"),
            Self::RocketmqTopic => f.write_str("topic name"),
            Self::ConsumerGroup => f.write_str("consumer group"),
            Self::Tags => f.write_str("tags, two vertical bars between them"),
            Self::DeduplicationKey => f.write_str("`\"id\"` or `\"header:NAME\"`"),
            Self::HttpHost => f.write_str("host name or address, or `\"*.DOMAIN\"`"),
            Self::Methods => f.write_str("list of methods, such as `[\"GET\", \"POST\"]`"),
        }
    }
}

/// What stands for a key that is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Nothing: the key must be there.
    Required,
    /// A value, as it would be written.
    Default(&'static str),
    /// What the absence means.
    Absent(&'static str),
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.write_str("required"),
            Self::Default(value) => write!(f, "`{value}`"),
            Self::Absent(meaning) => f.write_str(meaning),
        }
    }
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Where it stands: names joined by dots; a name in `<>` stands for any name, one that ends in `[]` for each
    /// table of a list.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What stands for it where it is absent.
    pub given: Given,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

/// Whether a name of a pattern stands for any name.
pub(crate) fn is_any(segment: &str) -> bool {
    segment.starts_with('<')
}

/// Whether a name of a pattern stands for the tables of a list.
pub(crate) fn is_list(segment: &str) -> bool {
    segment.ends_with("[]")
}

/// A name of a pattern as it is written.
pub(crate) fn written(segment: &str) -> &str {
    segment.trim_end_matches("[]")
}

/// The key at exactly this pattern.
pub(crate) fn find(pattern: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == pattern)
}

/// The names that can follow a pattern, in the order of the table. The empty pattern is the top level.
pub(crate) fn below(pattern: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for rest in KEYS.iter().filter_map(|key| remainder(key.path, pattern)) {
        let name = rest.split('.').next().unwrap_or(rest);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The ways from a pattern down to keys of that last name: `retry.backoff` below a subscription.
pub(crate) fn ways_down(pattern: &str, last: &str) -> Vec<&'static str> {
    KEYS.iter()
        .filter_map(|key| remainder(key.path, pattern))
        .filter(|rest| rest.rsplit('.').next() == Some(last) && !rest.contains(['<', '[']))
        .collect()
}

fn remainder(path: &'static str, pattern: &str) -> Option<&'static str> {
    if pattern.is_empty() {
        return Some(path);
    }
    path.strip_prefix(pattern)?.strip_prefix('.')
}

/// One pattern below another.
pub(crate) fn join(pattern: &str, name: &str) -> String {
    if pattern.is_empty() { name.to_owned() } else { format!("{pattern}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_stands_twice_nor_below_another() {
        for (index, one) in KEYS.iter().enumerate() {
            for other in KEYS.iter().skip(index + 1) {
                assert_ne!(one.path, other.path);
            }
            assert_eq!(below(one.path), Vec::<&str>::new(), "{}", one.path);
        }
    }

    #[test]
    fn a_level_knows_its_names() {
        assert_eq!(
            below(""),
            ["host", "embedded", "sqs", "pubsub", "rocketmq", "tenants", "subscriptions"]
        );
        assert_eq!(below("subscriptions"), ["<subscription>"]);
        assert_eq!(
            below("subscriptions.<subscription>.retry"),
            ["backoff", "max_backoff", "jitter", "window"]
        );
        assert_eq!(ways_down("subscriptions.<subscription>", "backoff"), ["retry.backoff"]);
    }
}
