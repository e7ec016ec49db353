//! What of a rejected copy can't be an attribute of a broker's own, as one JSON text (C-11).
//!
//! A text holds, each where there is any: `headers`, a list of `["name", "String" | "Number" | "Binary", "text or
//! base64"]`; `numbers`, the names of those attributes that are numbers; `orderingKey`. Where it has no room beside the
//! body it stands behind it, and `{"behindBody": n}` in its place says how many bytes of it there are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::HeaderValue;
use crate::copy::names;

const HEADERS: &str = "headers";
const NUMBERS: &str = "numbers";
const ORDERING_KEY: &str = "orderingKey";
const BEHIND_BODY: &str = "behindBody";

/// What is packed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packed {
    /// Headers that are no attributes.
    pub headers: Vec<(String, HeaderValue)>,
    /// The names of those headers that are attributes, and numbers.
    pub numbers: Vec<String>,
    /// The ordering key where the message's own is another; empty where the original had none.
    pub ordering_key: Option<String>,
}

impl Packed {
    /// Whether there is nothing to pack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.numbers.is_empty() && self.ordering_key.is_none()
    }

    /// The JSON text, on one line; the control characters below U+0020 are escaped in it.
    #[must_use]
    pub fn text(&self) -> String {
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

    /// Reads the text that stood in a copy's attribute; where that says so, from behind the body, which is shortened.
    /// None, and the body is as it was, where it is no such text. Of entries that are none of ours, or have a name of
    /// the metadata, nothing is taken.
    #[must_use]
    pub fn take(text: &str, body: &mut Bytes) -> Option<Self> {
        let Some(length) = length_behind(text) else { return Self::read(text) };
        let at = body.len().checked_sub(length)?;
        let packed = Self::read(std::str::from_utf8(body.get(at..)?).ok()?)?;
        body.truncate(at);
        Some(packed)
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

/// The text that says that so many bytes stand behind the body.
#[must_use]
pub fn behind(length: usize) -> String {
    json!({ BEHIND_BODY: length }).to_string()
}

fn length_behind(text: &str) -> Option<usize> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.get(BEHIND_BODY)?.as_u64()?.try_into().ok()
}

fn entry((name, value): &(String, HeaderValue)) -> Value {
    let (kind, text) = match value {
        HeaderValue::Text(text) => ("String", text.clone()),
        HeaderValue::Number(text) => ("Number", text.clone()),
        HeaderValue::Binary(bytes) => ("Binary", STANDARD.encode(bytes)),
    };
    json!([name, kind, text])
}

fn header(entry: &Value) -> Option<(String, HeaderValue)> {
    let [name, kind, text] = entry.as_array()?.as_slice() else { return None };
    let (name, text) = (name.as_str()?.to_owned(), text.as_str()?);
    let value = match kind.as_str()? {
        "Binary" => HeaderValue::Binary(Bytes::from(STANDARD.decode(text).ok()?)),
        "Number" => HeaderValue::Number(text.to_owned()),
        _ => HeaderValue::Text(text.to_owned()),
    };
    (!names::RESERVED.contains(&name.as_str())).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some() -> Packed {
        Packed {
            headers: vec![
                ("a\u{1}".to_owned(), HeaderValue::from("b\n\"ü")),
                (String::new(), HeaderValue::Number("1e3".into())),
                ("bytes".to_owned(), HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
            ],
            numbers: vec!["n".to_owned()],
            ordering_key: Some("key".to_owned()),
        }
    }

    fn taken(text: &str, body: &'static [u8]) -> (Option<Packed>, Bytes) {
        let mut body = Bytes::from_static(body);
        (Packed::take(text, &mut body), body)
    }

    /// The format is what copies lie in brokers with: it does not change.
    #[test]
    fn c_11_the_text_is_the_one_that_copies_have() {
        let text = "{\"headers\":[[\"a\\u0001\",\"String\",\"b\\n\\\"ü\"],[\"\",\"Number\",\"1e3\"],[\"bytes\",\"Binary\",\"AP8=\"]],\"numbers\":[\"n\"],\"orderingKey\":\"key\"}";
        assert_eq!(some().text(), text);
        assert_eq!(taken(text, b"body"), (Some(some()), Bytes::from_static(b"body")));
        assert_eq!(
            (Packed::default().text().as_str(), behind(7).as_str()),
            ("{}", "{\"behindBody\":7}")
        );
        assert!(Packed::default().is_empty() && !some().is_empty());
    }

    #[test]
    fn c_11_what_stands_behind_the_body_is_taken_off_it() {
        let text = some().text();
        let mut body = Bytes::from(format!("body{text}"));
        assert_eq!(Packed::take(&behind(text.len()), &mut body), Some(some()));
        assert_eq!(body, "body");
    }

    /// C-7: what is none of ours is left alone, and so is the body.
    #[test]
    fn c_7_foreign_texts_are_none() {
        let foreign = ["", "7", "[]", "not json", "{\"behindBody\":9}", "{\"behindBody\":2}"];
        for text in foreign {
            assert_eq!(taken(text, b"body"), (None, Bytes::from_static(b"body")), "{text}");
        }
        let odd = "{\"headers\":[7,[\"a\"],[\"deliveryCount\",\"String\",\"9\"],[\"b\",\"Binary\",\"?\"],[\"c\",\"x\",\"d\"]],\"numbers\":[7,\"n\"],\"orderingKey\":7,\"more\":1}";
        let expected = Packed {
            headers: vec![("c".to_owned(), HeaderValue::from("d"))],
            numbers: vec!["n".to_owned()],
            ordering_key: None,
        };
        assert_eq!(taken(odd, b"").0, Some(expected));
    }

    fn value() -> impl Strategy<Value = HeaderValue> {
        prop_oneof![
            any::<String>().prop_map(HeaderValue::Text),
            any::<String>().prop_map(HeaderValue::Number),
            any::<Vec<u8>>().prop_map(|bytes| HeaderValue::Binary(bytes.into())),
        ]
    }

    proptest! {
        /// C-11: beside the body or behind it, all of it is there again, byte for byte.
        #[test]
        fn c_11_what_is_packed_is_there_again(
            headers in proptest::collection::vec((any::<String>(), value()), 0..5),
            numbers in any::<Vec<String>>(),
            ordering_key in any::<Option<String>>(),
            body in any::<Vec<u8>>(),
        ) {
            let packed = Packed { headers, numbers, ordering_key };
            let text = packed.text();
            prop_assert!(!text.contains(['\u{1}', '\u{2}', '\n']), "one line");
            let mut beside = Bytes::from(body.clone());
            prop_assert_eq!(Packed::take(&text, &mut beside), Some(packed.clone()));
            prop_assert_eq!(&beside[..], &body[..]);
            let mut whole = Bytes::from([&body[..], text.as_bytes()].concat());
            prop_assert_eq!(Packed::take(&behind(text.len()), &mut whole), Some(packed));
            prop_assert_eq!(&whole[..], &body[..]);
        }
    }
}
