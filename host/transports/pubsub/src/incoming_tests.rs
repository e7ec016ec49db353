use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use pumphouse_contract::copy::{is_routed_copy, stamped_count};
use pumphouse_contract::{Count, Mono, Outgoing};

use super::*;
use crate::PACKED;
use crate::outgoing::{
    fit,
    tests::{any_copy, stamp},
};

const PLAIN: Reading = Reading { rejected: false };
const REJECTED: Reading = Reading { rejected: true };

fn lease() -> Lease {
    Lease::from(Mono(Duration::from_secs(7)), Duration::from_secs(30))
}

/// What Pub/Sub hands over of a message that was sent so.
fn received_again(message: Outgoing) -> ReceivedMessage {
    let wire = fit(message).expect("it fits");
    received(PubsubMessage {
        data: wire.data,
        attributes: wire.attributes.into_iter().collect(),
        ordering_key: wire.key,
        ..PubsubMessage::default()
    })
}

fn received(message: PubsubMessage) -> ReceivedMessage {
    let message = PubsubMessage { message_id: "m-2".into(), ..message };
    ReceivedMessage { ack_id: "ack".into(), message: Some(message), delivery_attempt: 1 }
}

fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> PubsubMessage {
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    PubsubMessage { attributes: pairs.into(), ..PubsubMessage::default() }
}

fn published(message: &mut PubsubMessage, seconds: i64, nanos: i32) {
    let time = message.publish_time.insert(Default::default());
    (time.seconds, time.nanos) = (seconds, nanos);
}

fn read(message: ReceivedMessage, reading: Reading) -> Message {
    Message::clone(&delivery(message, lease(), reading).message)
}

/// By name, since attributes have no order.
fn sorted<'a>(headers: impl Iterator<Item = (&'a str, &'a HeaderValue)>) -> Vec<(String, String)> {
    let mut all: Vec<_> =
        headers.map(|(name, value)| (name.to_owned(), format!("{value:?}"))).collect();
    all.sort();
    all
}

proptest! {
    // Each is up to 160 headers.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// C-7, C-11: read where copies are honoured, a copy is the original and its metadata.
    #[test]
    fn c_11_every_copy_is_read_as_the_original_with_its_metadata(sent in any_copy()) {
        let read = read(received_again(sent.clone()), REJECTED);
        prop_assert!(is_routed_copy(&read.headers));
        prop_assert_eq!(stamped_count(&read.headers), Count(3));
        let metadata = |name: &str| names::RESERVED.contains(&name);
        let own = read.headers.iter().filter(|(name, _)| !metadata(name));
        prop_assert_eq!(sorted(own), sorted(sent.headers.iter()));
        prop_assert_eq!(read.ordering_key, sent.ordering_key);
        prop_assert_eq!(read.body, sent.body);
    }
}

#[test]
fn c_7_elsewhere_what_is_packed_is_an_ordinary_header() {
    let bytes = HeaderValue::Binary(Bytes::from_static(b"\0"));
    let headers: Headers = [("raw", bytes)].into_iter().collect();
    let sent = Outgoing { headers, stamp: Some(stamp()), ..Outgoing::default() };
    let read = read(received_again(sent), PLAIN);
    assert!(read.headers.text(PACKED).is_some_and(|text| text.contains("raw")));
    assert_eq!(read.headers.get("raw"), None);
}

/// C-7: the reason is what tells a copy; a foreign attribute of our name is left alone.
#[test]
fn c_7_foreign_attributes_of_our_names_are_left_alone() {
    let packed = r#"{"headers":[["a","String","b"]]}"#;
    let ordinary = read(received(attributes([(PACKED, packed)])), REJECTED);
    assert_eq!(ordinary.headers.text(PACKED), Some(packed));
    for foreign in ["", "7", "not json", r#"{"behindBody":9}"#, r#"{"behindBody":2}"#] {
        let mut message = attributes([(PACKED, foreign), ("rejectionReason", "None")]);
        message.data = Bytes::from_static(b"body");
        let copy = read(received(message), REJECTED);
        assert_eq!(copy.headers.text(PACKED), Some(foreign));
        assert_eq!(copy.body, "body");
    }
    let stamped = [
        (PACKED, r#"{"headers":[["deliveryCount","String","9"],7,["a"]]}"#),
        ("rejectionReason", "None"),
    ];
    let copy = read(received(attributes(stamped)), REJECTED);
    assert_eq!((copy.headers.len(), stamped_count(&copy.headers)), (1, Count(0)));
}

/// C-6: the count is the field's.
#[test]
fn c_6_the_count_is_the_fields_and_no_attribute() {
    for (wire, presented) in [(0, 0), (1, 0), (2, 1), (5, 4), (-3, 0), (i32::MAX, i32::MAX - 1)] {
        let mut message = received(attributes([("googclient_deliveryattempt", "9")]));
        message.delivery_attempt = wire;
        let delivery = delivery(message, lease(), PLAIN);
        assert_eq!(delivery.counted.count(), Count(u32::try_from(presented).expect("a count")));
        assert!(delivery.message.headers.is_empty());
        assert_eq!(matches!(delivery.counted, Counted::Unreported), wire < 1);
    }
}

/// C-15: what the broker moved by itself shows where it came from, and no metadata.
#[test]
fn c_15_a_message_that_pubsub_moved_shows_where_it_came_from() {
    let name = "CloudPubSubDeadLetterSourceSubscription";
    let moved = read(received(attributes([(name, "orders")])), REJECTED);
    assert_eq!(moved.headers.text(name), Some("orders"));
    assert!(!is_routed_copy(&moved.headers));
}

#[test]
fn a_trace_of_googles_clients_has_its_usual_names() {
    let pairs = [("googclient_traceparent", "00-a-b-01"), ("googclient_tracestate", "x=y")];
    let theirs = read(received(attributes(pairs)), PLAIN);
    let headers: Vec<_> =
        theirs.headers.iter().filter_map(|(n, v)| Some((n, v.as_str()?))).collect();
    assert_eq!(headers, [("traceparent", "00-a-b-01"), ("tracestate", "x=y")]);
    let both = [("googclient_traceparent", "theirs"), ("traceparent", "ours")];
    let both = read(received(attributes(both)), PLAIN);
    assert_eq!((both.headers.text("traceparent"), both.headers.len()), (Some("ours"), 2));
}

#[test]
fn everything_that_pubsub_says_of_a_message_is_read() {
    let mut message = attributes([("content-type", "text/plain"), ("b", "2"), ("a", "1")]);
    message.data = Bytes::from_static(b"\0\xff");
    message.ordering_key = "k".into();
    published(&mut message, 1, 500_000_000);
    let delivery = delivery(received(message), lease(), PLAIN);
    assert_eq!((delivery.receipt.as_text().as_ref(), delivery.lease), ("ack", lease()));
    let message = &delivery.message;
    assert_eq!((message.id.as_str(), message.body.as_ref()), ("m-2", &b"\0\xff"[..]));
    assert_eq!(message.content_type.as_deref(), Some("text/plain"));
    assert_eq!(message.ordering_key.as_deref(), Some("k"));
    assert_eq!(message.published_at, Some(Timestamp(1_500)));
    assert_eq!(message.headers, [("a", "1"), ("b", "2")].into_iter().collect::<Headers>());
    let mut absurd = attributes([]);
    published(&mut absurd, i64::MAX, 0);
    assert_eq!(read(received(absurd), PLAIN).published_at, None);
}

/// What marks a message of nothing is taken off.
#[test]
fn a_message_of_nothing_has_no_headers() {
    let empty = read(received_again(Outgoing::default()), PLAIN);
    assert!(empty.headers.is_empty() && empty.body.is_empty());
    let nothing = ReceivedMessage { message: None, ..received(PubsubMessage::default()) };
    assert!(read(nothing, PLAIN).id.is_empty());
}
