//! What a handler is given.

use std::time::SystemTime;

use crate::Failure;

/// One delivery of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The broker's id of the message. It stays the same over every redelivery.
    pub id: String,

    /// The name of the source that the message came from, as the configuration spells it.
    pub source: String,

    /// How many deliveries of this message came before this one: 0 the first time.
    ///
    /// On brokers whose counter is approximate (Amazon SQS) it is at least the number of earlier deliveries
    /// that reached a handler.
    pub delivery_count: u32,

    /// What the sender attached, in the order in which the broker gives it. A binary value is in base64, a
    /// number in decimal digits.
    pub headers: Vec<(String, String)>,

    /// The media type of the body, where the sender named one.
    pub content_type: Option<String>,

    /// Messages of one key are handled one after another on an ordered source. `None`: no order is kept.
    pub ordering_key: Option<String>,

    /// When the broker took the message, to the millisecond, where the broker tells.
    pub published_at: Option<SystemTime>,

    /// The body, byte for byte as it was sent.
    pub body: Vec<u8>,
}

impl Message {
    /// The body as text.
    ///
    /// # Errors
    ///
    /// A body that is not UTF-8 is a [`Failure`] that rejects the message as unacceptable.
    pub fn body_str(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.body)
            .map_err(|error| Failure::unacceptable(format_args!("the body is not UTF-8: {error}")))
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    ///
    /// A body that is not JSON, or not of the shape of `T`, is a [`Failure`] that rejects the message as
    /// unacceptable.
    #[cfg(feature = "json")]
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::unacceptable(format_args!("the body can't be read: {error}")))
    }

    /// The first header of that name, upper and lower case being different.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Messages for tests of a handler.
impl Message {
    /// A first delivery of a message with that body, id `test-message`, from the source `test`.
    pub fn test(body: impl Into<Vec<u8>>) -> Self {
        Self {
            id: "test-message".into(),
            source: "test".into(),
            delivery_count: 0,
            headers: Vec::new(),
            content_type: None,
            ordering_key: None,
            published_at: None,
            body: body.into(),
        }
    }

    /// The same message with that id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The same message from that source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// The same message after so many earlier deliveries.
    #[must_use]
    pub fn with_delivery_count(mut self, earlier: u32) -> Self {
        self.delivery_count = earlier;
        self
    }

    /// The same message with one more header at the end.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same message with that media type.
    #[must_use]
    pub fn with_content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// The same message with that ordering key.
    #[must_use]
    pub fn with_ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// The same message, published at that time.
    #[must_use]
    pub fn with_published_at(mut self, time: SystemTime) -> Self {
        self.published_at = Some(time);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn a_test_message_is_a_first_delivery() {
        let message = Message::test("hello");
        assert_eq!(message.delivery_count, 0);
        assert_eq!(message.body_str(), Ok("hello"));
        assert_eq!(message.headers, []);
    }

    #[test]
    fn the_builder_sets_every_field() {
        let message = Message::test(*b"x")
            .with_id("m-1")
            .with_source("orders")
            .with_delivery_count(3)
            .with_content_type("text/plain")
            .with_ordering_key("customer-7")
            .with_published_at(SystemTime::UNIX_EPOCH);
        assert_eq!(message.id, "m-1");
        assert_eq!(message.source, "orders");
        assert_eq!(message.delivery_count, 3);
        assert_eq!(message.content_type.as_deref(), Some("text/plain"));
        assert_eq!(message.ordering_key.as_deref(), Some("customer-7"));
        assert_eq!(message.published_at, Some(SystemTime::UNIX_EPOCH));
    }

    #[test]
    fn the_first_header_of_a_name_wins_and_case_matters() {
        let message = Message::test("").with_header("a", "1").with_header("a", "2");
        assert_eq!(message.header("a"), Some("1"));
        assert_eq!(message.header("A"), None);
    }

    #[test]
    fn a_body_that_is_not_text_is_unacceptable() {
        let failure = Message::test([0xff, 0xfe]).body_str().map(str::to_owned).unwrap_err();
        assert!(matches!(failure, Failure::Reject { reason: Reason::Unacceptable, .. }));
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_body_of_another_shape_is_unacceptable() {
        assert_eq!(Message::test("[1, 2]").json::<Vec<u8>>(), Ok(vec![1, 2]));
        for body in ["[1, 2", "{}"] {
            let failure = Message::test(body).json::<Vec<u8>>().unwrap_err();
            assert!(matches!(failure, Failure::Reject { reason: Reason::Unacceptable, .. }));
        }
    }
}
