//! What of a message can't be a property, or no body of RocketMQ's: [`PACKED`](crate::PACKED) and
//! [`ENCODING`](crate::ENCODING).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_contract::copy::{is_routed_copy, names};
use pumphouse_contract::{HeaderValue, Headers};
use serde_json::{Map, Value, json};

use crate::{ENCODING, PACKED};

/// What stands for a body of nothing, which RocketMQ does not take.
pub(crate) const EMPTY: &str = "empty";
pub(crate) const EMPTY_BODY: &str = " ";

/// The metadata that may be empty, which no property can be.
const MAYBE_EMPTY: [&str; 2] = [names::ORIGINAL_MESSAGE_TYPE, names::REJECTION_MESSAGE];

const HEADERS: &str = "headers";
const NUMBERS: &str = "numbers";
const GROUP: &str = "orderingKey";
const BEHIND_BODY: &str = "behindBody";

/// A header on its way.
pub(crate) type Header = (String, HeaderValue);

/// What is packed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Packed {
    pub(crate) headers: Vec<Header>,
    /// The names of those headers that are properties, and numbers.
    pub(crate) numbers: Vec<String>,
    /// The message group where it is not the property's; empty where the original had none.
    pub(crate) group: Option<String>,
}

impl Packed {
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.numbers.is_empty() && self.group.is_none()
    }

    /// The JSON text. It has none of the characters that part properties.
    pub(crate) fn text(&self) -> String {
        let mut fields = Map::new();
        if !self.headers.is_empty() {
            fields.insert(HEADERS.to_owned(), self.headers.iter().map(entry).collect());
        }
        if !self.numbers.is_empty() {
            fields.insert(NUMBERS.to_owned(), self.numbers.clone().into());
        }
        if let Some(group) = &self.group {
            fields.insert(GROUP.to_owned(), group.as_str().into());
        }
        Value::Object(fields).to_string()
    }

    fn read(text: &str) -> Option<Self> {
        let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
        let list = |name: &str| fields.get(name).and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            headers: list(HEADERS).filter_map(header).collect(),
            numbers: list(NUMBERS).filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            group: fields.get(GROUP).and_then(Value::as_str).map(str::to_owned),
        })
    }
}

fn entry((name, value): &Header) -> Value {
    let (kind, text) = match value {
        HeaderValue::Text(text) => ("String", text.clone()),
        HeaderValue::Number(text) => ("Number", text.clone()),
        HeaderValue::Binary(bytes) => ("Binary", STANDARD.encode(bytes)),
    };
    json!([name, kind, text])
}

fn header(entry: &Value) -> Option<Header> {
    let [name, kind, text] = entry.as_array()?.as_slice() else { return None };
    let (name, text) = (name.as_str()?.to_owned(), text.as_str()?);
    let value = match kind.as_str()? {
        "Binary" => HeaderValue::Binary(Bytes::from(STANDARD.decode(text).ok()?)),
        "Number" => HeaderValue::Number(text.to_owned()),
        _ => HeaderValue::Text(text.to_owned()),
    };
    (!names::RESERVED.contains(&name.as_str())).then_some((name, value))
}

/// The value of the property that says that so many bytes stand behind the body.
pub(crate) fn behind(length: usize) -> String {
    json!({ BEHIND_BODY: length }).to_string()
}

/// Takes off what marks a body of nothing. Where a source knows rejected copies, after [`undo`].
pub(crate) fn uncover(headers: &mut Headers, body: &mut Bytes) {
    if headers.text(ENCODING) == Some(EMPTY) && body == EMPTY_BODY.as_bytes() {
        headers.remove(ENCODING);
        body.clear();
    }
}

/// Undoes what was packed in a rejected copy, for a source that knows them (C-7). The headers are all properties that
/// are none of RocketMQ's own, `content-type` included. Nothing is touched where it is no copy, or the property none
/// of ours.
pub(crate) fn undo(headers: &mut Headers, ordering_key: &mut Option<String>, body: &mut Bytes) {
    if !is_routed_copy(headers) {
        return;
    }
    for name in MAYBE_EMPTY {
        if headers.get(name).is_none() {
            headers.set(name, "");
        }
    }
    if let Some(packed) = take(headers, body) {
        unpack(headers, ordering_key, packed);
    }
}

fn take(headers: &Headers, body: &mut Bytes) -> Option<Packed> {
    let text = headers.text(PACKED)?;
    let Some(length) = length_behind(text) else { return Packed::read(text) };
    let at = body.len().checked_sub(length)?;
    let packed = Packed::read(std::str::from_utf8(body.get(at..)?).ok()?)?;
    body.truncate(at);
    Some(packed)
}

fn unpack(headers: &mut Headers, ordering_key: &mut Option<String>, packed: Packed) {
    let plain = headers.iter().filter(|(name, _)| *name != PACKED).map(|(name, value)| {
        let value = match value {
            HeaderValue::Text(text) if packed.numbers.iter().any(|it| it == name) => {
                HeaderValue::Number(text.clone())
            }
            value => value.clone(),
        };
        (name.to_owned(), value)
    });
    *headers = plain.chain(packed.headers.iter().cloned()).collect();
    if let Some(group) = packed.group {
        *ordering_key = Some(group).filter(|group| !group.is_empty());
    }
}

fn length_behind(text: &str) -> Option<usize> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.get(BEHIND_BODY)?.as_u64()?.try_into().ok()
}
