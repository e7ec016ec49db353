//! Topics of Apache RocketMQ.

use std::fmt;

use toml_span::value::Value;

use super::{Place, Role, required};
use crate::diagnostic::Code;
use crate::keys::Kind;
use crate::report::{At, Note};
use crate::section::Section;
use crate::values::{Bad, text};
use crate::words::TopicKind;

/// The longest name of a topic, in characters, its namespace included.
pub(crate) const LONGEST_TOPIC: usize = 127;
/// The longest name of a consumer group, in characters, its namespace included.
pub(crate) const LONGEST_GROUP: usize = 120;
/// The longest host in the address of a name server, in bytes.
const LONGEST_HOST: usize = 253;
/// Topics that the broker keeps for itself.
const KEPT: [&str; 7] = [
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "CHECKPOINT_TOPIC",
];

/// A topic of RocketMQ, and who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RocketmqPlace {
    /// `topic`, without the namespace.
    pub topic: String,
    /// `kind`; of a destination that does not say it that of the source.
    pub kind: TopicKind,
    /// `queues`: how many the topic has on each broker where it is made.
    pub queues: u32,
    /// Who reads it, where it is a source.
    pub reader: Option<RocketmqReader>,
}

/// As what a topic is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RocketmqReader {
    /// `group`, without the namespace.
    pub group: String,
    /// `tags`; none for all messages.
    pub tags: Option<String>,
}

impl RocketmqPlace {
    /// What stands after the name where the place is shown.
    pub(super) fn fmt_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " ({})", self.kind)?;
        let Some(reader) = &self.reader else { return Ok(()) };
        write!(f, " as group {}", reader.group)?;
        reader.tags.iter().try_for_each(|tags| write!(f, ", tags {tags}"))
    }
}

/// The topic of a place; none where it is absent or wrong.
pub(super) fn read(section: &Section<'_>, role: Role) -> Option<Place> {
    let topic = required(section, "topic", topic);
    let written = section.word("kind");
    let queues = section.count("queues").unwrap_or_default();
    let (reader, kind) = match role {
        Role::Source => (Some(reader(section)), written.unwrap_or(TopicKind::Normal)),
        Role::Destination(like) => (None, written.unwrap_or(like)),
    };
    let (topic, reader) = (topic?, reader.map_or(Some(None), |read| read.map(Some))?);
    Some(Place::Rocketmq(RocketmqPlace { topic, kind, queues, reader }))
}

fn reader(section: &Section<'_>) -> Option<RocketmqReader> {
    let tags = section.read("tags", tags);
    if !section.has("group") {
        let message = "`group` is missing: a topic is read as a consumer group";
        section.error("group", At::Key, Note::new(Code::Missing, message));
    }
    let group = section.read("group", group)?;
    Some(RocketmqReader { group, tags })
}

/// A topic by its name in its namespace.
fn topic(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let topic = named(text(value, kind)?, "topic", LONGEST_TOPIC)?;
    if KEPT.contains(&topic.as_str()) || topic.to_ascii_lowercase().starts_with("rmq_sys_") {
        return Err(Bad::value(format!("{topic:?} is a topic that the broker keeps for itself")));
    }
    Ok(topic)
}

/// A consumer group by its name in its namespace.
fn group(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    named(text(value, kind)?, "consumer group", LONGEST_GROUP)
}

/// A namespace.
pub(crate) fn namespace(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    named(text(value, kind)?, "namespace", LONGEST_TOPIC)
}

fn named(name: String, what: &str, longest: usize) -> Result<String, Bad> {
    if name.contains('%') {
        return Err(Bad::value(format!(
            "{name:?} holds `%`, which parts a namespace from a name: the namespace is said once, as `rocketmq.namespace`"
        )));
    }
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if name.len() > longest || name.contains(odd) {
        return Err(Bad::value(format!(
            "{name:?} is no {what}: letters, digits, `-` and `_`, at most {longest}"
        )));
    }
    Ok(name)
}

/// Tags, as `a || b`.
fn tags(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    let tags: Vec<&str> = text.split("||").map(str::trim).collect();
    let odd = |tag: &&str| {
        tag.is_empty() || tag.contains(|c: char| c.is_whitespace() || c.is_control() || c == '|')
    };
    if tags.contains(&"*") {
        return Err(Bad::value("`*` is every tag: leave `tags` out"));
    }
    if tags.iter().any(odd) {
        return Err(Bad::value(format!("{text:?} is no list of tags")));
    }
    Ok(tags.join(" || "))
}

/// The name servers.
pub(crate) fn name_servers(value: &Value<'_>, _: &Kind) -> Result<Vec<String>, Bad> {
    let list = value.as_array().ok_or_else(|| Bad::kind("a list of texts", value))?;
    if list.is_empty() {
        return Err(Bad::value("the list is empty: without a name server no broker is found"));
    }
    list.iter().map(name_server).collect()
}

fn name_server(value: &Value<'_>) -> Result<String, Bad> {
    let address = value.as_str().ok_or_else(|| Bad::kind("a text in the list", value))?;
    let sound = address.rsplit_once(':').is_some_and(|(host, port)| {
        is_host(host) && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if sound {
        return Ok(address.to_owned());
    }
    Err(Bad::value(format!("{address:?} is no host with a port, such as `\"127.0.0.1:9876\"`")))
}

/// A name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(inner) = inner {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !host.is_empty() && host.len() <= LONGEST_HOST && host.chars().all(plain)
}
