//! Messages on their way to a broker, and as a broker keeps them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Between a property's name and its value, and behind the value.
const NAME_END: char = '\u{1}';
const VALUE_END: char = '\u{2}';

pub(super) const ID: &str = "UNIQ_KEY";
pub(super) const GROUP: &str = "__SHARDINGKEY";

/// The magic number of a message of which the topic's length takes two bytes, not one.
const SECOND_VERSION: u32 = 0xdaa3_20ab;
const COMPRESSED: u32 = 1;
const ZLIB: u32 = 3 << 8;
const BORN_ON_V6: u32 = 1 << 4;
const STORED_ON_V6: u32 = 1 << 5;

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct Message {
    /// The body.
    pub body: Vec<u8>,
    /// The properties.
    pub properties: BTreeMap<String, String>,
    /// What its sender says of the body (`sysFlag`).
    pub flags: u32,
}

/// A message of this body: text as it is, anything else as JSON.
#[must_use]
pub fn message(body: &Value) -> Message {
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Message { body: body.into_bytes(), properties: BTreeMap::new(), flags: 0 }
}

impl Message {
    /// Of this message group.
    #[must_use]
    pub fn of(self, group: &str) -> Self {
        self.with(GROUP, group)
    }

    /// With a property.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.properties.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Said to be compressed with zlib.
    #[must_use]
    pub fn zlib(mut self) -> Self {
        self.flags = COMPRESSED | ZLIB;
        self
    }

    pub(super) fn packed_properties(&self) -> String {
        let each = self.properties.iter();
        each.map(|(name, value)| format!("{name}{NAME_END}{value}{VALUE_END}")).collect()
    }

    /// The queue among so many that the Java client sends it to; none without a group.
    pub(super) fn queue(&self, queues: u32) -> Option<u32> {
        let group = self.properties.get(GROUP)?;
        Some((java_hash(group) % i32::try_from(queues).expect("few queues")).unsigned_abs())
    }
}

/// `String.hashCode` of Java.
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// A message as it lies in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The id that stays over redeliveries.
    pub id: String,
    /// The body.
    pub body: String,
    /// The properties, those of the broker included.
    pub properties: BTreeMap<String, String>,
    /// The message group; empty where it has none.
    pub group: String,
    /// How often it was delivered before.
    pub reconsumed: u32,
    /// Where it lies.
    pub queue: u32,
    /// Whether the body is compressed; it is shown empty then.
    pub compressed: bool,
}

impl Stored {
    /// A property as text.
    ///
    /// # Panics
    /// When it has none of this name.
    #[must_use]
    pub fn property(&self, name: &str) -> &str {
        self.properties.get(name).unwrap_or_else(|| panic!("{name}: {self:#?}"))
    }
}

/// The messages in an answer to a pull or a pop.
pub(super) fn decoded(mut bytes: &[u8]) -> Vec<Stored> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let size = usize::try_from(u32::from_be_bytes(bytes[..4].try_into().expect("four")));
        let (one, rest) = bytes.split_at(size.expect("a size"));
        all.push(one_of(Bytes(&one[4..])));
        bytes = rest;
    }
    all
}

fn one_of(mut bytes: Bytes<'_>) -> Stored {
    let (magic, _checksum, queue, _flag) = (bytes.int(), bytes.int(), bytes.int(), bytes.int());
    let _offsets = bytes.take(16);
    let flags = bytes.int();
    let host = |flag: u32| if flags & flag == 0 { 8 } else { 20 };
    let _born = bytes.take(8 + host(BORN_ON_V6));
    let _stored = bytes.take(8 + host(STORED_ON_V6));
    let reconsumed = bytes.int();
    let _transaction = bytes.take(8);
    let length = bytes.int();
    let body = bytes.take(length as usize);
    let topic = if magic == SECOND_VERSION { bytes.short() } else { bytes.take(1)[0].into() };
    let _topic = bytes.take(topic.into());
    let length = bytes.short();
    let properties = unpacked(bytes.take(length.into()));
    let compressed = flags & COMPRESSED != 0;
    let text = |name: &str| properties.get(name).cloned().unwrap_or_default();
    Stored {
        id: text(ID),
        body: if compressed { String::new() } else { String::from_utf8_lossy(body).into_owned() },
        group: text(GROUP),
        properties,
        reconsumed,
        queue,
        compressed,
    }
}

fn unpacked(text: &[u8]) -> BTreeMap<String, String> {
    let text = std::str::from_utf8(text).expect("text");
    let each = text.split(VALUE_END).filter_map(|one| one.split_once(NAME_END));
    each.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn int(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four"))
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two"))
    }
}
