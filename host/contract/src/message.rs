//! What a transport hands over.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Counted, Lease, Timestamp};

/// The header that names a message's type; a rejected copy repeats it as `originalMessageType`.
pub const TYPE_HEADER: &str = "type";

/// One header's value, kept as the broker has it, so that a copy is faithful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// Text.
    Text(String),
    /// A number in decimal digits, as the broker spells it.
    Number(String),
    /// Bytes.
    Binary(Bytes),
}

impl HeaderValue {
    /// The text of a text or a number; none for bytes.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Binary(_) => None,
        }
    }

    /// How many bytes the value has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Number(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether the value has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&str> for HeaderValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Headers in the broker's order. Names are compared letter by letter, as brokers do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, HeaderValue)>);

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The first value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The first value of that name, where it is a text or a number.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(HeaderValue::as_str)
    }

    /// Adds a header; one of the same name is replaced.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<HeaderValue>) {
        let name = name.into();
        self.0.retain(|(n, _)| *n != name);
        self.0.push((name, value.into()));
    }

    /// Removes every header of that name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Keeps what `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(n, _)| keep(n));
    }

    /// Every header, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &HeaderValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// How many headers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<HeaderValue>> FromIterator<(N, V)> for Headers {
    /// The pairs as they come; a name that comes twice stays twice.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(n, v)| (n.into(), v.into())).collect())
    }
}

/// A message, the same over every delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The broker's id that stays over redeliveries.
    pub id: String,
    /// What the sender attached. The broker's own counters are not among them (C-6).
    pub headers: Headers,
    /// The media type of the body, where the sender named one.
    pub content_type: Option<String>,
    /// The key within which an ordered source keeps the order.
    pub ordering_key: Option<String>,
    /// When the broker took the message.
    pub published_at: Option<Timestamp>,
    /// The body, byte for byte.
    pub body: Bytes,
}

/// What a transport needs to settle one delivery. Opaque to everyone else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt(pub Bytes);

impl Receipt {
    /// The receipt as text, where the transport made it from text.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<String> for Receipt {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

/// One message handed by a transport to a pump.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The message; where `undecodable` is set, what could be had of it, with the body as received.
    pub message: Arc<Message>,
    /// Why the transport could not decode what it received. Such a delivery is `unacceptable` (FR-06).
    pub undecodable: Option<String>,
    /// Which delivery this is.
    pub counted: Counted,
    /// When the message was first delivered to anyone, where the broker tells (S-3).
    pub first_received_at: Option<Timestamp>,
    /// How long the message is ours.
    pub lease: Lease,
    /// What settles it.
    pub receipt: Receipt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_header_replaces_every_earlier_one() {
        let mut headers: Headers = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        headers.set("a", "4");
        assert_eq!(headers.iter().filter(|(n, _)| *n == "a").count(), 1);
        assert_eq!(headers.text("a"), Some("4"));
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn bytes_have_no_text() {
        let headers: Headers =
            [("raw", HeaderValue::Binary(Bytes::from_static(b"\xff")))].into_iter().collect();
        assert_eq!(headers.text("raw"), None);
    }
}
