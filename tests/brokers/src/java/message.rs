use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

/// A message to send.
#[derive(Debug, Clone, Default)]
pub struct JavaMessage {
    body: Bytes,
    tag: Option<String>,
    keys: Vec<String>,
    group: Option<String>,
    delay: Option<Duration>,
    properties: BTreeMap<String, String>,
}

impl JavaMessage {
    /// A message with this body alone. The client refuses an empty one.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Its tag.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Self {
        self.tag = Some(tag.to_owned());
        self
    }

    /// One more key, without a space in it.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }

    /// The group of messages that it is in order with: its sharding key.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Given after this time, in whole milliseconds.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// One more property of the user's.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({
            "body": to_hex(&self.body), "keys": self.keys, "properties": self.properties,
        });
        let delay = self.delay.map(|delay| json!(u64::try_from(delay.as_millis()).ok()));
        let optional = [
            ("tag", self.tag.as_ref().map(|tag| json!(tag))),
            ("group", self.group.as_ref().map(|group| json!(group))),
            ("delayMs", delay),
        ];
        if let Some(json) = json.as_object_mut() {
            for (name, value) in optional {
                json.extend(value.map(|value| (name.to_owned(), value)));
            }
        }
        json
    }
}

/// Where a message that was sent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The id that the client gave it.
    pub id: String,
    /// The name of its broker.
    pub broker: String,
    /// The number of its queue.
    pub queue: i32,
    /// Its place in the queue.
    pub offset: i64,
}

impl Sent {
    pub(super) fn read(line: &Value) -> Option<Self> {
        Some(Self {
            id: text(line, "id")?,
            broker: text(line, "broker")?,
            queue: line.get("queue")?.as_i64()?.try_into().ok()?,
            offset: line.get("offset")?.as_i64()?,
        })
    }
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The id that its sender gave it.
    pub id: String,
    /// Its body.
    pub body: Bytes,
    /// The topic that it was read from.
    pub topic: String,
    /// Its tag.
    pub tag: Option<String>,
    /// Its keys, with spaces between them.
    pub keys: Option<String>,
    /// The group of messages that it is in order with: its sharding key.
    pub group: Option<String>,
    /// How often it was given before.
    pub reconsume_times: i32,
    /// When it was made, in milliseconds since 1970.
    pub born_ms: i64,
    /// When the broker stored it, in milliseconds since 1970.
    pub store_ms: i64,
    /// The name of its broker.
    pub broker: String,
    /// The number of its queue.
    pub queue: i32,
    /// Its place in the queue.
    pub offset: i64,
    /// All properties, those of the system included.
    pub properties: BTreeMap<String, String>,
}

impl Received {
    pub(super) fn read(line: &Value) -> Option<Self> {
        let properties = line.get("properties")?.as_object()?.iter();
        let properties =
            properties.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let number = |name| line.get(name)?.as_i64();
        Some(Self {
            id: text(line, "id")?,
            body: from_hex(line.get("body")?.as_str()?)?.into(),
            topic: text(line, "topic")?,
            tag: text(line, "tag"),
            keys: text(line, "keys"),
            group: text(line, "group"),
            reconsume_times: number("reconsumeTimes")?.try_into().ok()?,
            born_ms: number("bornMs")?,
            store_ms: number("storeMs")?,
            broker: text(line, "broker")?,
            queue: number("queue")?.try_into().ok()?,
            offset: number("offset")?,
            properties: properties.collect::<Option<_>>()?,
        })
    }
}

fn text(line: &Value, name: &str) -> Option<String> {
    line.get(name)?.as_str().map(str::to_owned)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16)?.try_into().ok()).collect();
    let pairs = digits?;
    let pairs = pairs.chunks(2).map(|pair| match pair {
        [high, low] => Some(high << 4 | low),
        _ => None,
    });
    pairs.collect()
}
