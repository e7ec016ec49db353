//! A message as SQS takes it: ten attributes, allowed characters, and the queue's own size limit.

use pumphouse_contract::copy::shorten;
use pumphouse_contract::{HeaderValue, Outgoing};
use sha2::{Digest, Sha256};

use crate::attributes::{Attribute, MOST};
use crate::packed::{Packed, entry_length, length};
use crate::{CONTENT_TYPE, ENCODING, PACKED, body, labels};

/// The group in a FIFO queue of messages that have no key.
const DEFAULT_GROUP: &str = "pumphouse";

/// The longest group and deduplication id.
const LONGEST_ID: usize = 128;

/// How much of a type is kept in the metadata where its whole length is too much, in bytes.
const SHORT_TYPE: usize = 256;

/// The size limits that a queue may have, smallest first, where its own was not asked for.
pub(crate) const USUAL_LIMITS: [usize; 2] = [262_144, 1_048_576];

/// What other programs look at first stays an attribute of its own as long as anything else can be packed.
const KEPT: [&str; 4] = [CONTENT_TYPE, "type", "traceparent", "tracestate"];

/// What is known of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) fifo: bool,
    /// The most bytes of one message; none where it was not asked for.
    pub(crate) limit: Option<usize>,
}

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) body: String,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) group: Option<String>,
    pub(crate) deduplication: Option<String>,
}

impl Wire {
    fn size(&self) -> usize {
        self.body.len() + self.attributes.iter().map(Attribute::size).sum::<usize>()
    }
}

/// Makes a message fit the queue.
///
/// # Errors
/// Says what can't be made to fit, and what would.
pub(crate) fn fit(message: Outgoing, shape: Shape) -> Result<Wire, String> {
    let (text, encoding) = body::encode(&message.body);
    let group = shape.fifo.then(|| group_id(message.ordering_key.as_deref()));
    let deduplication = shape.fifo.then(|| deduplication_id(message.deduplication_id.as_deref()));
    let mut own = labels::apply(message.headers);
    if let Some(content_type) = message.content_type {
        own.insert(0, Attribute::new(CONTENT_TYPE, HeaderValue::from(content_type)));
    }
    let fixed: Vec<_> =
        encoding.map(|it| Attribute::new(ENCODING, HeaderValue::from(it))).into_iter().collect();
    let mut wire = Wire { body: text, attributes: fixed, group, deduplication };
    let Some(stamp) = message.stamp else {
        return ordinary(wire, own, shape);
    };
    let mut packed = Packed::new(&stamp);
    packed.ordering_key = message.ordering_key.filter(|key| wire.group.as_ref() != Some(key));
    let (attributes, rest) = place(own, MOST - 1 - wire.attributes.len());
    wire.attributes.extend(attributes);
    packed.headers = rest;
    with_metadata(wire.clone(), &packed, shape).or_else(|_| {
        // The type stands among the headers too.
        packed.shorten_type(SHORT_TYPE);
        with_metadata(wire, &packed, shape)
    })
}

/// A message without metadata goes as it is or not at all: nobody would undo what is packed.
fn ordinary(mut wire: Wire, own: Vec<Attribute>, shape: Shape) -> Result<Wire, String> {
    for (at, one) in own.iter().enumerate() {
        let taken = own.iter().take(at).any(|other| other.name == one.name);
        if let Some(problem) = problem(one, taken) {
            return Err(format!("header {:?}: {problem}", one.name));
        }
    }
    wire.attributes.extend(own);
    let count = wire.attributes.len();
    if count > MOST {
        return Err(format!(
            "it needs {count} attributes with those for the body's type and encoding, and SQS takes {MOST}"
        ));
    }
    let (size, most) = (wire.size(), largest(shape));
    if size > most { Err(too_large(size, most)) } else { Ok(wire) }
}

/// The attributes that have a place of their own among `room`, and those to pack.
fn place(own: Vec<Attribute>, room: usize) -> (Vec<Attribute>, Vec<Attribute>) {
    let mut placed: Vec<Attribute> = Vec::with_capacity(own.len());
    let mut packed = Vec::new();
    for attribute in own {
        let taken = placed.iter().any(|other| other.name == attribute.name);
        let to = if problem(&attribute, taken).is_none() { &mut placed } else { &mut packed };
        to.push(attribute);
    }
    // What grows least by being packed goes first.
    placed.sort_by_cached_key(|one| (!KEPT.contains(&one.name.as_str()), entry_length(one)));
    let kept = placed.iter().filter(|one| KEPT.contains(&one.name.as_str())).count();
    let excess = placed.len().saturating_sub(room);
    let from = kept.min(placed.len() - excess);
    packed.extend(placed.drain(from..from + excess));
    (placed, packed)
}

fn problem(attribute: &Attribute, taken: bool) -> Option<&'static str> {
    if taken {
        return Some("there are two of that name, and SQS takes one");
    }
    if attribute.name == PACKED || attribute.name == ENCODING {
        return Some("the name is the host's own");
    }
    attribute.problem()
}

/// Adds the metadata, with as much of its description as fits.
fn with_metadata(mut wire: Wire, packed: &Packed, shape: Shape) -> Result<Wire, String> {
    let mut attribute = Attribute::new(PACKED, HeaderValue::from(packed.text("")));
    let least = wire.size() + attribute.size();
    let limits = shape.limit.map_or(USUAL_LIMITS.to_vec(), |limit| vec![limit]);
    let Some(room) = limits.iter().find_map(|limit| limit.checked_sub(least)) else {
        return Err(too_large(least, largest(shape)));
    };
    attribute.value = packed.text(&shortened(packed.description(), room)).into();
    wire.attributes.push(attribute);
    Ok(wire)
}

/// The longest beginning of a text that takes at most `room` bytes in JSON.
fn shortened(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    let (mut fits, mut too_long) = (0, text.len());
    while fits + 1 < too_long {
        let middle = fits.midpoint(too_long);
        if length(&shorten(text, middle)) <= room { fits = middle } else { too_long = middle }
    }
    shorten(text, fits)
}

fn largest(shape: Shape) -> usize {
    shape.limit.unwrap_or(USUAL_LIMITS[1])
}

fn too_large(size: usize, most: usize) -> String {
    format!(
        "it has {size} bytes with its attributes and the queue takes {most}; raise the queue's MaximumMessageSize or send less"
    )
}

fn group_id(key: Option<&str>) -> String {
    key.map_or_else(|| DEFAULT_GROUP.to_owned(), identifier)
}

/// One of its own for a message that names none, so that equal bodies are two messages.
fn deduplication_id(id: Option<&str>) -> String {
    id.map_or_else(|| format!("{:032x}", rand::random::<u128>()), identifier)
}

/// The text itself where a FIFO queue takes it as an id, else its hash.
fn identifier(text: &str) -> String {
    let allowed = text.bytes().all(|byte| byte.is_ascii_graphic());
    if allowed && (1..=LONGEST_ID).contains(&text.len()) {
        return text.to_owned();
    }
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
