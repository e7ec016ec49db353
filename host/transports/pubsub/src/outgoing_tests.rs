use std::collections::HashMap;

use proptest::prelude::*;
use pumphouse_contract::{Headers, Reason, Timestamp};

use super::*;
use crate::PACKED;

pub(crate) fn stamp() -> Stamp {
    Stamp {
        original_topic: "orders".into(),
        original_message_type: "order".into(),
        reason: Reason::DeliveryError,
        message: "why".into(),
        timestamp: Timestamp(0),
        original_message_id: "m-1".into(),
        rejected_by: "orders/acme/orders@abc".into(),
        deliveries: 3,
    }
}

fn copy_of(headers: Headers, body: &'static [u8]) -> Outgoing {
    Outgoing {
        headers,
        content_type: Some("text/plain".into()),
        ordering_key: Some("key".into()),
        deduplication_id: Some("orders/m-1/DeliveryError".into()),
        body: Bytes::from_static(body),
        stamp: Some(stamp()),
    }
}

fn message_of(headers: Headers) -> Outgoing {
    Outgoing { headers, body: Bytes::from_static(b"text"), ..Outgoing::default() }
}

fn numbered(count: usize) -> Headers {
    (0..count).map(|at| (format!("h{at}"), HeaderValue::from("v"))).collect()
}

fn is_taken(wire: &Wire) -> Result<(), String> {
    let mut names: Vec<_> = wire.attributes.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let mut problems = Vec::new();
    if names.len() != wire.attributes.len() {
        problems.push("a name comes twice".to_owned());
    }
    if wire.attributes.len() > MOST {
        problems.push(format!("{} attributes", wire.attributes.len()));
    }
    for (name, value) in &wire.attributes {
        let fits = (1..=LONGEST_NAME).contains(&name.len()) && value.len() <= LONGEST_VALUE;
        if !fits || name.starts_with("goog") {
            problems.push(format!("{name:?}: {} bytes", value.len()));
        }
    }
    if wire.size() > MOST_BYTES || wire.key.len() > LONGEST_KEY {
        problems.push(format!("{} bytes, a key of {}", wire.size(), wire.key.len()));
    }
    if wire.data.is_empty() && wire.attributes.is_empty() {
        problems.push("nothing at all".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// Takes out what was packed, as a source does.
fn unpack(wire: &Wire) -> (HashMap<String, String>, Bytes, Packed) {
    let mut attributes: HashMap<_, _> = wire.attributes.iter().cloned().collect();
    let mut body = wire.data.clone();
    let packed = packed::take(&mut attributes, &mut body).unwrap_or_default();
    (attributes, body, packed)
}

/// C-11: the metadata are plain attributes, whatever else there is.
#[test]
fn c_11_the_metadata_are_attributes_of_their_own() {
    let wire = fit(copy_of(numbered(3), b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    let attributes: HashMap<_, _> = wire.attributes.iter().cloned().collect();
    for (name, value) in stamp().pairs() {
        assert_eq!(attributes.get(name), Some(&value), "{name}");
    }
    assert_eq!(attributes.len(), 8 + 3 + 1);
    assert_eq!((&wire.data[..], wire.key.as_str()), (&b"body"[..], "key"));
}

/// C-11: an original may have a hundred attributes of its own.
#[test]
fn c_11_what_is_more_than_a_hundred_is_packed_and_the_body_stays() {
    for count in 90..=100 {
        let mut headers = numbered(count);
        headers.set("traceparent", "00-…-01");
        let wire = fit(copy_of(headers, b"body")).expect("it fits");
        is_taken(&wire).expect("taken");
        let (attributes, body, packed) = unpack(&wire);
        assert_eq!(
            (attributes.len() + packed.headers.len(), &body[..]),
            (8 + count + 2, &b"body"[..])
        );
        assert!(attributes.contains_key("traceparent") && attributes.contains_key(CONTENT_TYPE));
        assert_eq!(wire.data, "body");
    }
}

/// C-11: the largest original that Pub/Sub knows.
#[test]
fn c_11_a_hundred_of_the_largest_attributes_stand_behind_the_body() {
    let one = |at: usize| (format!("{at:0>256}"), HeaderValue::Text("v".repeat(LONGEST_VALUE)));
    let headers: Headers = (0..MOST).map(one).collect();
    let wire = fit(copy_of(headers, b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    assert!(wire.data.starts_with(b"body{"));
    let (attributes, body, packed) = unpack(&wire);
    assert_eq!(attributes.len() + packed.headers.len(), 8 + MOST + 1);
    assert_eq!(body, "body");
}

#[test]
fn c_11_a_header_that_can_be_no_attribute_is_packed() {
    let long = "v".repeat(LONGEST_VALUE + 1);
    let headers: Headers = [
        ("", HeaderValue::from("no name")),
        ("googclient_schemaencoding", HeaderValue::from("JSON")),
        ("long", HeaderValue::from(long.as_str())),
        ("bytes", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ("fine", HeaderValue::from("first")),
        ("fine", HeaderValue::from("second")),
        ("number", HeaderValue::Number("12".into())),
        (PACKED, HeaderValue::from("a sender's own")),
        ("pumphouse-7", HeaderValue::from("a sender's own")),
        (ENCODING, HeaderValue::from(EMPTY)),
        ("pumphouse-types", HeaderValue::from("another transport's")),
    ]
    .into_iter()
    .collect();
    let wire = fit(copy_of(headers, b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    let (attributes, body, packed) = unpack(&wire);
    let names: Vec<_> = packed.headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["", "googclient_schemaencoding", "long", "bytes", "fine", PACKED, "pumphouse-7", ENCODING];
    assert_eq!(names, expected);
    assert_eq!(packed.numbers, ["number"]);
    for plain in ["fine", "number", "pumphouse-types"] {
        assert!(attributes.contains_key(plain), "{plain}");
    }
    assert_eq!(body, "body");
}

/// C-11: what would mislead stays behind, and what an earlier rejection left is never carried on.
#[test]
fn c_11_what_an_earlier_move_left_does_not_travel() {
    let headers: Headers = [
        ("CloudPubSubDeadLetterSourceDeliveryCount", "5"),
        ("CloudPubSubDeadLetterSourceTopicPublishTime", "2026-11-30T00:00:00Z"),
        ("googclient_deliveryattempt", "4"),
        ("deliveryCount", "99"),
        ("own", "x"),
    ]
    .into_iter()
    .collect();
    let wire = fit(copy_of(headers.clone(), b"body")).expect("it fits");
    let (attributes, _, packed) = unpack(&wire);
    assert_eq!(packed, Packed::default());
    assert_eq!(attributes.get(names::DELIVERY_COUNT).map(String::as_str), Some("3"));
    assert_eq!(attributes.len(), 8 + 2);
    let mut headers = headers;
    headers.remove("deliveryCount");
    let sent = fit(message_of(headers)).expect("it fits");
    assert_eq!(sent.attributes, [("own".to_owned(), "x".to_owned())]);
}

/// C-11: shortened on a character's border.
#[test]
fn c_11_metadata_are_shortened_to_what_an_attribute_takes() {
    let long =
        Stamp { message: "ä".repeat(800), original_message_type: "t".repeat(2_000), ..stamp() };
    let message = Outgoing { stamp: Some(long), ..copy_of(Headers::new(), b"body") };
    let wire = fit(message).expect("it fits");
    is_taken(&wire).expect("taken");
    let attributes: HashMap<_, _> = wire.attributes.iter().cloned().collect();
    let description = attributes.get(names::REJECTION_MESSAGE).expect("a description");
    assert!(description.ends_with("ä…") && description.len() > LONGEST_VALUE - 4, "{description}");
    assert_eq!(attributes.get(names::ORIGINAL_MESSAGE_TYPE).map(String::len), Some(LONGEST_VALUE));
}

/// C-11: the description gives way to a body that is almost too large.
#[test]
fn c_11_the_description_gives_way_to_the_body() {
    let sized = |size: usize| Outgoing {
        body: Bytes::from(vec![b'b'; size]),
        stamp: Some(Stamp { message: "d".repeat(1_000), ..stamp() }),
        ..Outgoing::default()
    };
    let description = |wire: &Wire| {
        let found = wire.attributes.iter().find(|(name, _)| name == names::REJECTION_MESSAGE);
        found.map_or(0, |(_, text)| text.len())
    };
    let whole = fit(sized(MOST_BYTES - 5_000)).expect("it fits");
    assert_eq!(description(&whole), 1_000);
    let shortened = fit(sized(MOST_BYTES - FRAME - 900)).expect("it fits");
    assert!((100..1_000).contains(&description(&shortened)), "{}", description(&shortened));
    let text = fit(sized(MOST_BYTES)).expect_err("too large");
    assert!(text.contains("10000000"), "{text}");
}

/// A key from another transport.
#[test]
fn c_11_a_key_that_is_too_long_is_hashed_and_kept() {
    let key = "k".repeat(LONGEST_KEY + 1);
    let message = Outgoing { ordering_key: Some(key.clone()), ..copy_of(Headers::new(), b"body") };
    let wire = fit(message.clone()).expect("it fits");
    assert_eq!(wire.key.len(), 64);
    assert_eq!(unpack(&wire).2.ordering_key.as_ref(), Some(&key));
    let other = Outgoing { ordering_key: Some(key + "k"), ..message };
    assert_ne!(fit(other).expect("it fits").key, wire.key);
}

#[test]
fn an_ordinary_message_goes_as_it_is_or_is_refused_by_name() {
    let sent = |headers: Headers| fit(message_of(headers));
    assert_eq!(sent(numbered(100)).map(|wire| wire.attributes.len()), Ok(100));
    let refused = |headers: Headers| sent(headers).expect_err("refused");
    assert!(refused(numbered(101)).contains("101 attributes"));
    assert!(refused([("twice", "1"), ("twice", "2")].into_iter().collect()).contains("\"twice\""));
    assert!(refused([(PACKED, "{}")].into_iter().collect()).contains("\"pumphouse\""));
    assert!(refused([("goog-x", "1")].into_iter().collect()).contains("\"goog-x\""));
    assert!(refused([("", "1")].into_iter().collect()).contains("no name"));
    let long = "v".repeat(LONGEST_VALUE + 1);
    assert!(refused([("long", long.as_str())].into_iter().collect()).contains("1024 bytes"));
    let bytes = [("raw", HeaderValue::Binary(Bytes::from_static(b"\0")))];
    assert!(refused(bytes.into_iter().collect()).contains("\"raw\""));
    let number = [("n", HeaderValue::Number("7".into()))].into_iter().collect();
    assert_eq!(sent(number).map(|wire| wire.attributes), Ok(vec![("n".into(), "7".into())]));
}

/// Pub/Sub takes no message of nothing, but handlers may.
#[test]
fn a_message_of_nothing_is_marked() {
    let wire = fit(Outgoing::default()).expect("it fits");
    assert_eq!(wire.attributes, [(ENCODING.to_owned(), EMPTY.to_owned())]);
    is_taken(&wire).expect("taken");
}

fn header() -> impl Strategy<Value = (String, HeaderValue)> {
    let value = prop_oneof![
        6 => ".{0,40}".prop_map(HeaderValue::Text),
        1 => ".{900,1100}".prop_map(HeaderValue::Text),
        2 => "[0-9]{0,40}".prop_map(HeaderValue::Number),
        1 => proptest::collection::vec(any::<u8>(), 0..3_000)
            .prop_map(|bytes| HeaderValue::Binary(Bytes::from(bytes))),
    ];
    let name = prop_oneof![
        8 => "[a-zA-Zä_-]{1,12}",
        1 => "[ -~]{0,3}",
        1 => "[a-z]{250,270}",
        1 => "goog[a-z]{1,5}",
        1 => Just(PACKED.to_owned()),
        1 => "pumphouse-[0-9]{0,2}",
    ];
    (name, value)
}

pub(crate) fn any_copy() -> impl Strategy<Value = Outgoing> {
    let headers = prop_oneof![
        3 => proptest::collection::vec(header(), 0..12),
        1 => proptest::collection::vec(header(), 85..160),
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    let key = proptest::option::of(prop_oneof![".{1,20}", ".{900,1100}"]);
    (headers, body, key, "\\PC{0,1500}").prop_map(|(headers, body, ordering_key, description)| {
        Outgoing {
            headers: headers.into_iter().collect(),
            content_type: None,
            ordering_key,
            deduplication_id: None,
            body: Bytes::from(body),
            stamp: Some(Stamp { message: description, ..stamp() }),
        }
    })
}

proptest! {
    // Each is up to 160 headers.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// C-11: whatever the original carries, its copy is one that Pub/Sub takes.
    #[test]
    fn c_11_every_copy_fits(message in any_copy()) {
        let wire = fit(message).map_err(TestCaseError::fail)?;
        is_taken(&wire).map_err(TestCaseError::fail)?;
    }
}
