//! A message as RocketMQ takes it: texts as properties, 32 kB of them in all, and a body.

use bytes::{Bytes, BytesMut};
use pumphouse_contract::copy::{names as metadata, shorten};
use pumphouse_contract::packed::behind;
use pumphouse_contract::{HeaderValue, Outgoing, Packed, Stamp};
use sha2::{Digest, Sha256};

use crate::names::{self, GROUP};
use crate::packed::{EMPTY, EMPTY_BODY};
use crate::{CONTENT_TYPE, ENCODING, Kind, PACKED};

/// The most bytes of a message's properties: what RocketMQ's store takes (32,767), less what it adds to them by and
/// by. A message that has no room for the time of its first pop would never be delivered again.
pub(crate) const MOST: usize = i16::MAX as usize - 1_024;

/// The most bytes of a body. The broker's own limit is its configuration's (4 MiB); beyond a frame of 16 MiB it cuts
/// the connection, which all requests share.
pub(crate) const MOST_BODY: usize = 16 * 1024 * 1024 - 512 * 1024;

/// The longest metadata, and what is always left of the description, in bytes.
const LONGEST_METADATA: usize = 1_024;

/// The longest message group, in bytes.
const LONGEST_GROUP: usize = 1_024;

/// What parts a property's name from its value, and one property from the next.
const SEPARATORS: [char; 2] = ['\u{1}', '\u{2}'];

/// What other programs look at first stays a property of its own as long as anything else can be packed.
const KEPT: [&str; 6] =
    [names::KEYS, names::TAGS, CONTENT_TYPE, "type", "traceparent", "tracestate"];

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) body: Bytes,
    pub(crate) properties: Vec<Property>,
    /// Among the properties, too.
    pub(crate) group: Option<String>,
}

/// A name and its value.
type Property = (String, String);

/// A header on its way.
type Header = (String, HeaderValue);

impl Wire {
    fn new(body: Bytes, properties: Vec<Property>, group: Option<String>) -> Self {
        let mut wire = Self { body, properties, group };
        if let Some(group) = &wire.group {
            wire.properties.push((GROUP.to_owned(), group.clone()));
        }
        wire
    }

    /// The properties as one text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(size(&self.properties));
        for (name, value) in &self.properties {
            text.extend([name.as_str(), "\u{1}", value, "\u{2}"]);
        }
        text
    }
}

/// How many bytes properties take.
fn size(properties: &[Property]) -> usize {
    properties.iter().map(|(name, value)| property_size(name, value)).sum()
}

fn property_size(name: &str, value: &str) -> usize {
    name.len() + value.len() + SEPARATORS.len()
}

/// Makes a message fit. `id` becomes the message's own; it stands for the group of a copy for an ordered topic that
/// has none, and of an ordinary message for such a topic.
///
/// # Errors
/// Says what can't be made to fit.
pub(crate) fn fit(message: Outgoing, kind: Kind, id: &str) -> Result<Wire, String> {
    let Outgoing { headers, content_type, ordering_key, body, stamp, .. } = message;
    let content_type = content_type.map(|it| (CONTENT_TYPE.to_owned(), HeaderValue::Text(it)));
    let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.clone()));
    let own = content_type.into_iter().chain(headers);
    let group = ordering_key.filter(|key| !key.is_empty());
    let wire = match stamp {
        None => {
            let group = group.or_else(|| (kind == Kind::Fifo).then(|| id.to_owned()));
            ordinary(own, group, body)?
        }
        Some(stamp) => copy(own.collect(), Group::new(group, kind, &stamp), body, &stamp),
    };
    let Wire { body, .. } = &wire;
    if body.len() > MOST_BODY {
        let length = body.len();
        return Err(format!("its body has {length} bytes, and a frame takes {MOST_BODY}"));
    }
    Ok(wire)
}

/// A message without metadata goes as it is or not at all: nobody would undo what is packed.
fn ordinary(
    own: impl Iterator<Item = Header>,
    group: Option<String>,
    body: Bytes,
) -> Result<Wire, String> {
    if group.as_deref().is_some_and(|group| group.contains(SEPARATORS)) {
        return Err("its ordering key has a control character 1 or 2, which part properties".into());
    }
    let mut properties: Vec<Property> = Vec::new();
    for (name, value) in own {
        let taken = properties.iter().any(|(other, _)| *other == name);
        let text = text(&name, value, taken);
        let text = text.map_err(|(_, why)| format!("header {name:?}: {why}"))?;
        properties.push((name, text));
    }
    let body = if body.is_empty() {
        properties.push((ENCODING.to_owned(), EMPTY.to_owned()));
        Bytes::from_static(EMPTY_BODY.as_bytes())
    } else {
        body
    };
    let wire = Wire::new(body, properties, group);
    let size = size(&wire.properties);
    if size > MOST {
        return Err(format!("its headers have {size} bytes, and RocketMQ takes {MOST}: send less"));
    }
    Ok(wire)
}

/// The text of a property of that name; the value again, and why, where there can be none.
fn text(
    name: &str,
    value: HeaderValue,
    taken: bool,
) -> Result<String, (HeaderValue, &'static str)> {
    let problem = match &value {
        _ if taken => Some("there are two of that name, and RocketMQ takes one"),
        _ if name == ENCODING || name == PACKED => Some("the name is the host's own"),
        _ if name.trim().is_empty() => Some("it has no name"),
        _ if names::is_reserved(name) => Some("the name is RocketMQ's own"),
        _ if name.contains(SEPARATORS) => Some("its name has a control character 1 or 2"),
        HeaderValue::Binary(_) => Some("it is of bytes, and RocketMQ takes texts"),
        _ if value.is_empty() => Some("it is empty, and RocketMQ drops what is empty"),
        HeaderValue::Text(text) | HeaderValue::Number(text) if text.contains(SEPARATORS) => {
            Some("it has a control character 1 or 2, which part properties")
        }
        _ => None,
    };
    match (problem, value) {
        (None, HeaderValue::Text(text) | HeaderValue::Number(text)) => Ok(text),
        (problem, value) => Err((value, problem.unwrap_or_default())),
    }
}

/// The message group of a copy.
struct Group {
    /// On the wire.
    wire: Option<String>,
    /// The original's, where it is another.
    packed: Option<String>,
}

impl Group {
    fn new(original: Option<String>, kind: Kind, stamp: &Stamp) -> Self {
        let Some(original) = original else {
            let ordered = kind == Kind::Fifo;
            let wire = ordered.then(|| identifier(&stamp.original_message_id));
            return Self { packed: wire.as_ref().map(|_| String::new()), wire };
        };
        let wire = identifier(&original);
        let packed = (wire != original).then_some(original);
        Self { wire: Some(wire), packed }
    }
}

/// The text itself where it can be a message group, else its hash.
fn identifier(text: &str) -> String {
    if (1..=LONGEST_GROUP).contains(&text.len()) && !text.contains(SEPARATORS) {
        return text.to_owned();
    }
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn copy(own: Vec<Header>, group: Group, body: Bytes, stamp: &Stamp) -> Wire {
    let mut properties = pairs(stamp);
    if body.is_empty() {
        properties.push((ENCODING.to_owned(), EMPTY.to_owned()));
    }
    let fixed =
        size(&properties) + group.wire.as_deref().map_or(0, |group| property_size(GROUP, group));
    let mut sorted = Sorted::new(own, group.packed);
    // The description gives way before a header does.
    let excess = (fixed + sorted.size()).saturating_sub(MOST);
    let cut = shorten_description(&mut properties, excess);
    let behind_body = sorted.arrange(MOST.saturating_sub(fixed - cut));
    properties.extend(sorted.properties());
    let body = if body.is_empty() { Bytes::from_static(EMPTY_BODY.as_bytes()) } else { body };
    let body = behind_body.map_or(body.clone(), |text| joined(&body, &text));
    Wire::new(body, properties, group.wire)
}

/// The metadata as properties. What is empty can be none, and is put in again by who knows copies.
fn pairs(stamp: &Stamp) -> Vec<Property> {
    let whole = |name: &str, value: String| {
        let most = if name == metadata::REJECTION_MESSAGE { MOST / 2 } else { LONGEST_METADATA };
        shorten(&value.replace(SEPARATORS, "\u{fffd}"), most)
    };
    let pairs = stamp.pairs().map(|(name, value)| (name.to_owned(), whole(name, value)));
    pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Shortens the description by so many bytes where it has them; gives how many it was.
fn shorten_description(properties: &mut [Property], excess: usize) -> usize {
    let mut cut = 0;
    for (name, value) in properties {
        let most = value.len().saturating_sub(excess).max(LONGEST_METADATA);
        if name == metadata::REJECTION_MESSAGE && most < value.len() {
            let short = shorten(value, most);
            cut = value.len() - short.len();
            *value = short;
        }
    }
    cut
}

fn joined(body: &Bytes, text: &str) -> Bytes {
    let mut whole = BytesMut::with_capacity(body.len() + text.len());
    whole.extend_from_slice(body);
    whole.extend_from_slice(text.as_bytes());
    whole.freeze()
}

/// The headers of a copy: those that can be properties, what is packed last coming first, and those that can't.
struct Sorted {
    /// With whether it is a number.
    placed: Vec<(String, String, bool)>,
    packed: Packed,
    /// The property of what is packed.
    property: Option<String>,
}

impl Sorted {
    fn new(own: Vec<Header>, group: Option<String>) -> Self {
        let packed = Packed { ordering_key: group, ..Packed::default() };
        let mut sorted = Self { placed: Vec::with_capacity(own.len()), packed, property: None };
        for (name, value) in own {
            if metadata::RESERVED.contains(&&*name) || metadata::COUNTERS.contains(&&*name) {
                continue;
            }
            sorted.add(name, value);
        }
        // The largest is packed first: then the fewest are.
        sorted.placed.sort_by_key(|(name, value, _)| {
            (!KEPT.contains(&name.as_str()), name.len() + value.len())
        });
        sorted.property = sorted.text();
        sorted
    }

    fn add(&mut self, name: String, value: HeaderValue) {
        let number = matches!(value, HeaderValue::Number(_));
        let taken = self.placed.iter().any(|(other, ..)| *other == name);
        match text(&name, value, taken) {
            Ok(text) => self.placed.push((name, text, number)),
            Err((value, _)) => self.packed.headers.push((name, value)),
        }
    }

    /// What is packed; none where nothing is.
    fn text(&mut self) -> Option<String> {
        let numbers = self.placed.iter().filter(|(.., number)| *number);
        self.packed.numbers = numbers.map(|(name, ..)| name.clone()).collect();
        (!self.packed.is_empty()).then(|| self.packed.text())
    }

    fn size(&self) -> usize {
        let placed = self.placed.iter().map(|(name, value, _)| property_size(name, value));
        let property = self.property.as_deref().map_or(0, |text| property_size(PACKED, text));
        placed.sum::<usize>() + property
    }

    /// Makes the properties fit in so many bytes; gives what then stands behind the body.
    fn arrange(&mut self, room: usize) -> Option<String> {
        if self.size() <= room {
            return None;
        }
        // The longest that it gets.
        self.property = Some(behind(usize::MAX));
        while self.size() > room {
            let Some((name, text, number)) = self.placed.pop() else { break };
            let value = if number { HeaderValue::Number(text) } else { HeaderValue::Text(text) };
            self.packed.headers.push((name, value));
        }
        let text = self.text().unwrap_or_default();
        self.property = Some(behind(text.len()));
        Some(text)
    }

    fn properties(self) -> impl Iterator<Item = Property> {
        let property = self.property.map(|text| (PACKED.to_owned(), text));
        self.placed.into_iter().map(|(name, text, _)| (name, text)).chain(property)
    }
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
pub(crate) mod tests;
