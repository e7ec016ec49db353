//! The attribute [`PACKED`](crate::PACKED): what of a rejected copy can't be an attribute of its own.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_contract::HeaderValue;
use pumphouse_contract::copy::names;
use serde_json::{Map, Value, json};

use crate::PACKED;

/// The longest value of an attribute, in bytes.
pub(crate) const LONGEST_VALUE: usize = 1_024;

const HEADERS: &str = "headers";
const NUMBERS: &str = "numbers";
const ORDERING_KEY: &str = "orderingKey";
const BEHIND_BODY: &str = "behindBody";

/// A header on its way.
pub(crate) type Header = (String, HeaderValue);

/// What is packed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Packed {
    pub(crate) headers: Vec<Header>,
    /// The names of those headers that are attributes, and numbers.
    pub(crate) numbers: Vec<String>,
    pub(crate) ordering_key: Option<String>,
}

impl Packed {
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.numbers.is_empty() && self.ordering_key.is_none()
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> String {
        let mut fields = Map::new();
        if !self.headers.is_empty() {
            fields.insert(HEADERS.to_owned(), self.headers.iter().map(entry).collect());
        }
        if !self.numbers.is_empty() {
            fields.insert(NUMBERS.to_owned(), self.numbers.clone().into());
        }
        if let Some(key) = &self.ordering_key {
            fields.insert(ORDERING_KEY.to_owned(), key.as_str().into());
        }
        Value::Object(fields).to_string()
    }

    fn read(text: &str) -> Option<Self> {
        let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
        let list = |name: &str| fields.get(name).and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            headers: list(HEADERS).filter_map(header).collect(),
            numbers: list(NUMBERS).filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            ordering_key: fields.get(ORDERING_KEY).and_then(Value::as_str).map(str::to_owned),
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

/// Whether an attribute of that name is one of ours.
pub(crate) fn is_own(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PACKED) else { return false };
    let number = rest.strip_prefix('-').unwrap_or_default();
    rest.is_empty() || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of the n-th of ours, from 0.
fn name(at: usize) -> String {
    if at == 0 { PACKED.to_owned() } else { format!("{PACKED}-{}", at + 1) }
}

/// The text as attributes of at most [`LONGEST_VALUE`] bytes.
pub(crate) fn attributes(text: &str) -> Vec<(String, String)> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(LONGEST_VALUE));
        parts.push((name(parts.len()), part.to_owned()));
        rest = after;
    }
    parts
}

/// The attribute that says that so many bytes stand behind the body.
pub(crate) fn behind(length: usize) -> (String, String) {
    (name(0), json!({ BEHIND_BODY: length }).to_string())
}

/// Takes what is packed out of a message. Nothing is touched where it is none of ours.
pub(crate) fn take(attributes: &mut HashMap<String, String>, body: &mut Bytes) -> Option<Packed> {
    let count = (0..).take_while(|at| attributes.contains_key(&name(*at))).count();
    let text: String = (0..count).filter_map(|at| attributes.get(&name(at))).cloned().collect();
    let packed = match length_behind(&text) {
        Some(length) => {
            let at = body.len().checked_sub(length)?;
            let packed = Packed::read(std::str::from_utf8(body.get(at..)?).ok()?)?;
            body.truncate(at);
            packed
        }
        None => Packed::read(&text)?,
    };
    for at in 0..count {
        attributes.remove(&name(at));
    }
    Some(packed)
}

fn length_behind(text: &str) -> Option<usize> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.get(BEHIND_BODY)?.as_u64()?.try_into().ok()
}
