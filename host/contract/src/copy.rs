//! The copy that a rejection puts on its destination, and how it is known again (C-7, C-11).

use std::sync::Arc;

use bytes::Bytes;

use crate::decide::Why;
use crate::message::TYPE_HEADER;
use crate::{Count, Headers, Message, Reason, Timestamp};

/// The names that a rejected copy carries. They are spelled so on every transport, and `publish` refuses them.
pub mod names {
    /// The configured source of the original.
    pub const ORIGINAL_TOPIC: &str = "originalTopic";
    /// The original's type header as received, else empty.
    pub const ORIGINAL_MESSAGE_TYPE: &str = "originalMessageType";
    /// The reason. Its presence is what tells a rejected copy from an ordinary message.
    pub const REJECTION_REASON: &str = "rejectionReason";
    /// What fired, or the handler's description.
    pub const REJECTION_MESSAGE: &str = "rejectionMessage";
    /// When, in RFC 3339, UTC.
    pub const REJECTION_TIMESTAMP: &str = "rejectionTimestamp";
    /// The original's id.
    pub const ORIGINAL_MESSAGE_ID: &str = "originalMessageId";
    /// `subscription/binding@version`.
    pub const REJECTED_BY: &str = "rejectedBy";
    /// The deliveries so far, the rejecting one included.
    pub const DELIVERY_COUNT: &str = "deliveryCount";

    /// All of them.
    pub const RESERVED: [&str; 8] = [
        ORIGINAL_TOPIC,
        ORIGINAL_MESSAGE_TYPE,
        REJECTION_REASON,
        REJECTION_MESSAGE,
        REJECTION_TIMESTAMP,
        ORIGINAL_MESSAGE_ID,
        REJECTED_BY,
        DELIVERY_COUNT,
    ];

    /// Counters by the names that brokers and their clients give them. Where one stands among a message's headers
    /// it is somebody's copy of a count: it is neither read nor shown to a handler (C-6), and never travels on.
    pub const COUNTERS: [&str; 3] =
        ["ApproximateReceiveCount", "googclient_deliveryattempt", "RECONSUME_TIME"];
}

/// What marks the end of a description that was shortened.
const ELLIPSIS: &str = "…";

/// A message on its way to a broker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The sender's headers.
    pub headers: Headers,
    /// The media type of the body.
    pub content_type: Option<String>,
    /// The key within which order is kept.
    pub ordering_key: Option<String>,
    /// Two messages of the same id are one to a broker that deduplicates. A transport may hash it.
    pub deduplication_id: Option<String>,
    /// The body, byte for byte.
    pub body: Bytes,
    /// Set on a rejected copy.
    pub stamp: Option<Stamp>,
}

/// The rejection metadata of a copy. A transport writes it as headers, or packs it where headers are few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// `originalTopic`.
    pub original_topic: String,
    /// `originalMessageType`.
    pub original_message_type: String,
    /// `rejectionReason`.
    pub reason: Reason,
    /// `rejectionMessage`.
    pub message: String,
    /// `rejectionTimestamp`.
    pub timestamp: Timestamp,
    /// `originalMessageId`.
    pub original_message_id: String,
    /// `rejectedBy`.
    pub rejected_by: String,
    /// `deliveryCount`.
    pub deliveries: u32,
}

impl Stamp {
    /// The metadata by name, in a fixed order.
    #[must_use]
    pub fn pairs(&self) -> [(&'static str, String); 8] {
        [
            (names::ORIGINAL_TOPIC, self.original_topic.clone()),
            (names::ORIGINAL_MESSAGE_TYPE, self.original_message_type.clone()),
            (names::REJECTION_REASON, self.reason.on_the_wire().to_owned()),
            (names::REJECTION_MESSAGE, self.message.clone()),
            (names::REJECTION_TIMESTAMP, self.timestamp.rfc3339()),
            (names::ORIGINAL_MESSAGE_ID, self.original_message_id.clone()),
            (names::REJECTED_BY, self.rejected_by.clone()),
            (names::DELIVERY_COUNT, self.deliveries.to_string()),
        ]
    }
}

/// A text of at most `most` bytes: shortened on a character's border and ended in `…` where it is longer.
#[must_use]
pub fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(ELLIPSIS.len()) else {
        return String::new();
    };
    let end = text.floor_char_boundary(room);
    let mut short = text.get(..end).unwrap_or_default().to_owned();
    short.push_str(ELLIPSIS);
    short
}

/// Whether these headers are a rejected copy's. Only meaningful where the source honours copies (C-7).
#[must_use]
pub fn is_routed_copy(headers: &Headers) -> bool {
    headers.get(names::REJECTION_REASON).is_some()
}

/// The count stamped in a rejected copy; 0 where it is absent or no number.
#[must_use]
pub fn stamped_count(headers: &Headers) -> Count {
    Count(headers.text(names::DELIVERY_COUNT).and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The message as a handler sees it: without the counters among its headers (C-6). The same one where it has none.
#[must_use]
pub fn shown(message: &Arc<Message>) -> Arc<Message> {
    let counts = |name: &str| names::COUNTERS.contains(&name);
    if !message.headers.iter().any(|(name, _)| counts(name)) {
        return message.clone();
    }
    let mut shown = Message::clone(message);
    shown.headers.retain(|name| !counts(name));
    Arc::new(shown)
}

/// The reserved names among these headers, which `publish` refuses.
#[must_use]
pub fn reserved_in(headers: &Headers) -> Vec<&str> {
    headers.iter().map(|(name, _)| name).filter(|name| names::RESERVED.contains(name)).collect()
}

/// Who rejects, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provenance<'a> {
    /// The source as configured.
    pub source: &'a str,
    /// `subscription/binding@version`.
    pub rejected_by: &'a str,
    /// Now.
    pub now: Timestamp,
}

/// The copy of a message for its rejection destination: every header of the sender's, the body byte for byte,
/// the key, the metadata, and the count c + 1 (C-11).
#[must_use]
pub fn rejected_copy(
    message: &Message,
    count: Count,
    reason: Reason,
    why: &Why,
    from: Provenance<'_>,
) -> Outgoing {
    let mut headers = message.headers.clone();
    headers.retain(|name| !names::RESERVED.contains(&name) && !names::COUNTERS.contains(&name));
    Outgoing {
        headers,
        content_type: message.content_type.clone(),
        ordering_key: message.ordering_key.clone(),
        deduplication_id: Some(format!("{}/{}/{}", from.source, message.id, reason.on_the_wire())),
        body: message.body.clone(),
        stamp: Some(Stamp {
            original_topic: from.source.to_owned(),
            original_message_type: message.headers.text(TYPE_HEADER).unwrap_or_default().to_owned(),
            reason,
            message: why.to_string(),
            timestamp: from.now,
            original_message_id: message.id.clone(),
            rejected_by: from.rejected_by.to_owned(),
            deliveries: count.deliveries(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeaderValue;

    fn rejected(headers: Headers) -> Outgoing {
        let message = Message {
            id: "m-1".into(),
            headers,
            ordering_key: Some("k".into()),
            body: Bytes::from_static(b"\x00\xff body"),
            ..Message::default()
        };
        let from = Provenance {
            source: "orders",
            rejected_by: "orders/acme/orders@abc",
            now: Timestamp(0),
        };
        rejected_copy(&message, Count(2), Reason::None, &Why::Handler("no".into()), from)
    }

    /// C-11.
    #[test]
    fn c_11_a_copy_carries_everything_of_the_original_and_the_metadata() {
        let raw = HeaderValue::Binary(Bytes::from_static(b"\xfe"));
        let headers: Headers =
            [("type", HeaderValue::from("order")), ("raw", raw.clone())].into_iter().collect();
        let copy = rejected(headers);
        assert_eq!(copy.headers.get("raw"), Some(&raw));
        assert_eq!(copy.body, Bytes::from_static(b"\x00\xff body"));
        assert_eq!(copy.ordering_key.as_deref(), Some("k"));
        assert_eq!(copy.deduplication_id.as_deref(), Some("orders/m-1/None"));
        let pairs = copy.stamp.expect("a stamp").pairs();
        let expected = [
            ("originalTopic", "orders"),
            ("originalMessageType", "order"),
            ("rejectionReason", "None"),
            ("rejectionMessage", "no"),
            ("rejectionTimestamp", "1970-01-01T00:00:00.000Z"),
            ("originalMessageId", "m-1"),
            ("rejectedBy", "orders/acme/orders@abc"),
            ("deliveryCount", "3"),
        ];
        assert_eq!(pairs.map(|(n, v)| (n, v)), expected.map(|(n, v)| (n, v.to_owned())));
    }

    /// C-11: no stale stamp and no broker's counter travels on.
    #[test]
    fn c_11_what_an_earlier_rejection_left_is_replaced() {
        let headers: Headers = [
            ("deliveryCount", "99"),
            ("rejectionReason", "None"),
            ("googclient_deliveryattempt", "4"),
            ("own", "x"),
        ]
        .into_iter()
        .collect();
        let copy = rejected(headers);
        assert_eq!(copy.headers.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["own"]);
        assert_eq!(copy.stamp.expect("a stamp").deliveries, 3);
    }

    /// C-7.
    #[test]
    fn c_7_a_copy_is_known_by_its_reason_alone() {
        let copy: Headers =
            [("rejectionReason", "None"), ("deliveryCount", "3")].into_iter().collect();
        let ordinary: Headers = [("deliveryCount", "3")].into_iter().collect();
        assert!(is_routed_copy(&copy) && !is_routed_copy(&ordinary));
        assert_eq!(stamped_count(&copy), Count(3));
        for absurd in ["", "-1", "many", "99999999999"] {
            let headers: Headers = [("deliveryCount", absurd)].into_iter().collect();
            assert_eq!(stamped_count(&headers), Count(0), "{absurd}");
        }
    }

    /// C-6.
    #[test]
    fn c_6_a_counter_inside_the_message_is_not_shown() {
        let headers: Headers =
            [("ApproximateReceiveCount", "9"), ("own", "x"), ("RECONSUME_TIME", "7")]
                .into_iter()
                .collect();
        let message = Arc::new(Message { headers, ..Message::default() });
        let names: Vec<_> = shown(&message).headers.iter().map(|(n, _)| n.to_owned()).collect();
        assert_eq!(names, ["own"]);
        let plain = Arc::new(Message::default());
        assert!(Arc::ptr_eq(&plain, &shown(&plain)));
    }

    #[test]
    fn a_text_is_shortened_on_a_border() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcdef", 5), "ab…");
        assert_eq!(shorten("ääää", 6), "ä…");
        assert_eq!(shorten("abcdef", 2), "");
    }
}
