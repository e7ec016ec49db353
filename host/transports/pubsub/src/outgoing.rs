//! A message as Pub/Sub takes it: 100 attributes, short names and texts, 10 MB.

use bytes::{Bytes, BytesMut};
use pumphouse_contract::copy::{names, shorten};
use pumphouse_contract::{HeaderValue, Outgoing, Packed, Stamp};
use sha2::{Digest, Sha256};

use crate::packed::{self, LONGEST_VALUE};
use crate::{CONTENT_TYPE, ENCODING};

/// The most attributes of one message.
pub(crate) const MOST: usize = 100;

/// The longest name of an attribute, in bytes.
pub(crate) const LONGEST_NAME: usize = 256;

/// The longest ordering key, in bytes.
pub(crate) const LONGEST_KEY: usize = 1_024;

/// The most bytes of one publish.
pub(crate) const MOST_BYTES: usize = 10_000_000;

/// What a publish has beside one message's own bytes, at most: the topic's name and what frames the fields.
const FRAME: usize = 2_048;

/// The names that Google keeps for itself.
const GOOGLE: &str = "goog";

/// What Pub/Sub's clients add to a message, and add anew where it is needed again.
const CLIENT: &str = "googclient_";

/// What Pub/Sub adds to a message that its own dead-letter policy moved.
const MOVED: &str = "CloudPubSubDeadLetterSource";

/// What stands for a message of nothing.
pub(crate) const EMPTY: &str = "empty";

/// What other programs look at first stays an attribute of its own as long as anything else can be packed.
const KEPT: [&str; 4] = [CONTENT_TYPE, "type", "traceparent", "tracestate"];

/// A header on its way.
pub(crate) type Header = (String, HeaderValue);

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) data: Bytes,
    pub(crate) attributes: Vec<(String, String)>,
    /// Empty where there is none.
    pub(crate) key: String,
}

impl Wire {
    fn size(&self) -> usize {
        let attributes = self.attributes.iter().map(|(name, value)| name.len() + value.len());
        self.data.len() + self.key.len() + attributes.sum::<usize>()
    }
}

/// Makes a message fit.
///
/// # Errors
/// Says what can't be made to fit.
pub(crate) fn fit(message: Outgoing) -> Result<Wire, String> {
    let Outgoing { headers, content_type, ordering_key, body, stamp, .. } = message;
    let key = ordering_key.unwrap_or_default();
    let content_type = content_type.map(|it| (CONTENT_TYPE.to_owned(), HeaderValue::Text(it)));
    let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.clone()));
    let own = content_type.into_iter().chain(headers);
    let own = own.filter(|(name, _)| !name.starts_with(MOVED));
    let wire = match stamp {
        None => ordinary(own.filter(|(name, _)| !name.starts_with(CLIENT)), &key, body)?,
        Some(stamp) => copy(own.collect(), &key, body, &stamp),
    };
    let size = wire.size();
    if size > MOST_BYTES {
        return Err(format!(
            "it has {size} bytes with its attributes, and Pub/Sub takes {MOST_BYTES}: send less"
        ));
    }
    Ok(wire)
}

/// A message without metadata goes as it is or not at all: nobody would undo what is packed.
fn ordinary(own: impl Iterator<Item = Header>, key: &str, data: Bytes) -> Result<Wire, String> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    for (name, value) in own {
        let taken = attributes.iter().any(|(other, _)| *other == name);
        let text = text(&name, value, taken);
        attributes
            .push((name.clone(), text.map_err(|(_, why)| format!("header {name:?}: {why}"))?));
    }
    if attributes.len() > MOST {
        let count = attributes.len();
        return Err(format!("it has {count} attributes, and Pub/Sub takes {MOST}: send fewer"));
    }
    if attributes.is_empty() && data.is_empty() {
        attributes.push((ENCODING.to_owned(), EMPTY.to_owned()));
    }
    Ok(Wire { data, attributes, key: identifier(key) })
}

/// The text of an attribute of that name; the value again, and why, where there can be none.
fn text(
    name: &str,
    value: HeaderValue,
    taken: bool,
) -> Result<String, (HeaderValue, &'static str)> {
    let problem = match &value {
        _ if taken => Some("there are two of that name, and Pub/Sub takes one"),
        _ if name == ENCODING || packed::is_own(name) => Some("the name is the host's own"),
        _ if name.is_empty() => Some("it has no name"),
        _ if name.len() > LONGEST_NAME => Some("its name is longer than 256 bytes"),
        _ if name.starts_with(GOOGLE) => Some("names that begin with goog are Google's own"),
        HeaderValue::Binary(_) => Some("it is of bytes, and Pub/Sub takes texts"),
        _ if value.len() > LONGEST_VALUE => Some("it is longer than 1024 bytes"),
        _ => None,
    };
    match (problem, value) {
        (None, HeaderValue::Text(text) | HeaderValue::Number(text)) => Ok(text),
        (problem, value) => Err((value, problem.unwrap_or_default())),
    }
}

fn copy(own: Vec<Header>, key: &str, body: Bytes, stamp: &Stamp) -> Wire {
    let metadata =
        stamp.pairs().map(|(name, value)| (name.to_owned(), shorten(&value, LONGEST_VALUE)));
    let room = MOST - metadata.len();
    let wire_key = identifier(key);
    let sorted = Sorted::new(own, (wire_key != key).then(|| key.to_owned()));
    let (attributes, behind) = sorted.clone().beside(room).unwrap_or_else(|| sorted.behind(room));
    let data = match behind {
        None => body,
        Some(text) => {
            let mut data = BytesMut::with_capacity(body.len() + text.len());
            data.extend_from_slice(&body);
            data.extend_from_slice(text.as_bytes());
            data.freeze()
        }
    };
    let mut wire = Wire { data, attributes: metadata.into(), key: wire_key };
    wire.attributes.extend(attributes);
    shorten_description(&mut wire);
    wire
}

/// Gives way where the whole would be too large.
fn shorten_description(wire: &mut Wire) {
    let excess = (wire.size() + FRAME).saturating_sub(MOST_BYTES);
    for (name, value) in &mut wire.attributes {
        if name == names::REJECTION_MESSAGE && excess > 0 {
            *value = shorten(value, value.len().saturating_sub(excess));
        }
    }
}

/// The headers of a copy: those that can be attributes, what is packed last coming first, and those that can't.
#[derive(Debug, Clone)]
struct Sorted {
    /// With whether it is a number.
    placed: Vec<(String, String, bool)>,
    packed: Packed,
}

/// Attributes, and the text that stands behind the body where there is one.
type Arranged = (Vec<(String, String)>, Option<String>);

impl Sorted {
    fn new(own: Vec<Header>, ordering_key: Option<String>) -> Self {
        let mut sorted = Self {
            placed: Vec::with_capacity(own.len()),
            packed: Packed { ordering_key, ..Packed::default() },
        };
        for (name, value) in own {
            if names::RESERVED.contains(&&*name) || names::COUNTERS.contains(&&*name) {
                continue;
            }
            let number = matches!(value, HeaderValue::Number(_));
            let taken = sorted.placed.iter().any(|(other, ..)| *other == name);
            match text(&name, value, taken) {
                Ok(text) => sorted.placed.push((name, text, number)),
                Err((value, _)) => sorted.packed.headers.push((name, value)),
            }
        }
        // The smallest takes least room in the JSON.
        sorted.placed.sort_by_key(|(name, value, _)| {
            (!KEPT.contains(&name.as_str()), std::cmp::Reverse(name.len() + value.len()))
        });
        sorted
    }

    /// With what is packed in attributes; none where there is not room enough for it.
    fn beside(mut self, room: usize) -> Option<Arranged> {
        loop {
            let text = self.text();
            let parts = text.len().div_ceil(LONGEST_VALUE);
            if parts > room {
                return None;
            }
            if self.placed.len() + parts <= room {
                let parts = packed::attributes(&text);
                // A part may end before a character that takes several bytes.
                if self.placed.len() + parts.len() <= room {
                    return Some((self.attributes(parts), None));
                }
            }
            self.pack_one()?;
        }
    }

    /// With what is packed behind the body.
    fn behind(mut self, room: usize) -> Arranged {
        while self.placed.len() >= room && self.pack_one().is_some() {}
        let text = self.text();
        (self.attributes(vec![packed::behind(text.len())]), Some(text))
    }

    fn pack_one(&mut self) -> Option<()> {
        let (name, text, number) = self.placed.pop()?;
        let value = if number { HeaderValue::Number(text) } else { HeaderValue::Text(text) };
        self.packed.headers.push((name, value));
        Some(())
    }

    /// What is packed; empty where nothing is.
    fn text(&mut self) -> String {
        let numbers = self.placed.iter().filter(|(.., number)| *number);
        self.packed.numbers = numbers.map(|(name, ..)| name.clone()).collect();
        if self.packed.is_empty() { String::new() } else { self.packed.text() }
    }

    fn attributes(self, own: Vec<(String, String)>) -> Vec<(String, String)> {
        self.placed.into_iter().map(|(name, text, _)| (name, text)).chain(own).collect()
    }
}

/// The key itself where Pub/Sub takes it, else its hash.
fn identifier(key: &str) -> String {
    if key.len() <= LONGEST_KEY {
        return key.to_owned();
    }
    Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
pub(crate) mod tests;
