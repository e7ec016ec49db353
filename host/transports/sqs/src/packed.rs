//! The attribute [`PACKED`](crate::PACKED): a rejected copy's metadata, and what else finds no place among ten
//! attributes, as one JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_contract::copy::{names, shorten};
use pumphouse_contract::{HeaderValue, Stamp};
use serde_json::{Map, Value};

use crate::attributes::{Attribute, basic};

/// Ours beside the metadata: the ordering key where the queue has no group for it.
const ORDERING_KEY: &str = "orderingKey";
/// Ours beside the metadata: the attributes without a place of their own, each as name, data type and value.
const HEADERS: &str = "headers";

/// What goes into the attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// The metadata by name.
    pub(crate) metadata: Vec<(&'static str, String)>,
    pub(crate) ordering_key: Option<String>,
    pub(crate) headers: Vec<Attribute>,
}

impl Packed {
    pub(crate) fn new(stamp: &Stamp) -> Self {
        Self { metadata: stamp.pairs().into(), ordering_key: None, headers: Vec::new() }
    }

    /// The JSON text, made of characters that SQS takes, with this description.
    pub(crate) fn text(&self, description: &str) -> String {
        let mut fields: Map<String, Value> = self
            .metadata
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
            .collect();
        fields.insert(names::REJECTION_MESSAGE.to_owned(), description.into());
        if let Some(key) = &self.ordering_key {
            fields.insert(ORDERING_KEY.to_owned(), key.as_str().into());
        }
        if !self.headers.is_empty() {
            fields.insert(HEADERS.to_owned(), self.headers.iter().map(entry).collect());
        }
        escaped(&Value::Object(fields).to_string())
    }

    /// Shortens the copy of the type to at most `most` bytes.
    pub(crate) fn shorten_type(&mut self, most: usize) {
        for (name, value) in &mut self.metadata {
            if *name == names::ORIGINAL_MESSAGE_TYPE {
                *value = shorten(value, most);
            }
        }
    }

    pub(crate) fn description(&self) -> &str {
        let own = self.metadata.iter().find(|(name, _)| *name == names::REJECTION_MESSAGE);
        own.map_or("", |(_, text)| text)
    }
}

/// How many bytes a text takes inside the JSON text, without its quotes.
pub(crate) fn length(text: &str) -> usize {
    escaped(&Value::from(text).to_string()).len().saturating_sub(2)
}

/// How many bytes an attribute takes inside the JSON text, with the comma after it.
pub(crate) fn entry_length(attribute: &Attribute) -> usize {
    escaped(&entry(attribute).to_string()).len() + 1
}

/// Control characters are escaped by JSON itself; these two are not, and SQS takes neither.
fn escaped(json: &str) -> String {
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

fn entry(attribute: &Attribute) -> Value {
    let value = match &attribute.value {
        HeaderValue::Text(text) | HeaderValue::Number(text) => text.clone(),
        HeaderValue::Binary(bytes) => STANDARD.encode(bytes),
    };
    Value::from(vec![attribute.name.clone(), attribute.data_type.clone(), value])
}

/// What such an attribute says; none where the text is no metadata of a rejected copy.
pub(crate) fn unpack(text: &str) -> Option<Packed> {
    let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
    let metadata: Vec<_> = names::RESERVED
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?.as_str()?.to_owned())))
        .collect();
    metadata.iter().find(|(name, _)| *name == names::REJECTION_REASON)?;
    let headers = fields.get(HEADERS).and_then(Value::as_array);
    Some(Packed {
        metadata,
        ordering_key: fields.get(ORDERING_KEY).and_then(Value::as_str).map(str::to_owned),
        headers: headers.into_iter().flatten().filter_map(attribute).collect(),
    })
}

fn attribute(entry: &Value) -> Option<Attribute> {
    let [name, data_type, value] = entry.as_array()?.as_slice() else { return None };
    let (data_type, text) = (data_type.as_str()?, value.as_str()?);
    let value = match basic(data_type) {
        "Binary" => HeaderValue::Binary(Bytes::from(STANDARD.decode(text).ok()?)),
        "Number" => HeaderValue::Number(text.to_owned()),
        _ => HeaderValue::Text(text.to_owned()),
    };
    Some(Attribute { name: name.as_str()?.to_owned(), data_type: data_type.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::is_allowed;

    fn sample() -> Packed {
        let metadata = names::RESERVED.map(|name| (name, format!("{name} \0\u{ffff}\"ä")));
        let values = [
            ("Number.int", HeaderValue::Number("12".into())),
            ("String", HeaderValue::from("\u{fffe}\u{1}")),
            ("Binary", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ];
        let headers = values.map(|(data_type, value)| Attribute {
            name: "own".into(),
            data_type: data_type.into(),
            value,
        });
        Packed {
            metadata: metadata.into(),
            ordering_key: Some("key\0".into()),
            headers: headers.into(),
        }
    }

    /// C-11: whatever the characters.
    #[test]
    fn c_11_what_is_packed_is_unpacked_and_has_allowed_characters_only() {
        let packed = sample();
        let text = packed.text(packed.description());
        assert!(is_allowed(&text), "{text}");
        assert_eq!(unpack(&text), Some(packed));
    }

    /// C-7: the reason is what tells a copy.
    #[test]
    fn c_7_a_text_without_a_reason_is_no_metadata() {
        for foreign in ["", "7", "{}", "not json", r#"{"deliveryCount":"3"}"#] {
            assert_eq!(unpack(foreign), None, "{foreign}");
        }
        let least = unpack(r#"{"rejectionReason":"None","headers":[1,["a"]],"other":7}"#);
        assert!(least.is_some_and(|packed| packed.headers.is_empty()));
    }

    #[test]
    fn lengths_are_those_of_the_json_text() {
        let mut packed = sample();
        let whole = packed.text("").len();
        for description in ["plain", "\0\"\u{ffff}ä"] {
            assert_eq!(packed.text(description).len(), whole + length(description));
        }
        let last = packed.headers.pop().expect("a header");
        assert_eq!(packed.text("").len(), whole - entry_length(&last));
    }
}
