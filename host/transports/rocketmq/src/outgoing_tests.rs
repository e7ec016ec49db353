use proptest::prelude::*;
use pumphouse_contract::{Headers, Reason, Timestamp};

use super::*;
use crate::packed;

pub(crate) const MESSAGE_ID: &str = "7F000001000100000000000000000001";

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

pub(crate) fn copy_of(headers: Headers, body: &'static [u8]) -> Outgoing {
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

fn normal(message: Outgoing) -> Result<Wire, String> {
    fit(message, Kind::Normal, MESSAGE_ID)
}

/// What RocketMQ keeps of properties: by `MessageDecoder.string2messageProperties`, which drops what is empty, and
/// keeps the last of a name.
pub(crate) fn stored(text: &str) -> Vec<Property> {
    let mut kept: Vec<Property> = Vec::new();
    for part in text.split('\u{2}') {
        let Some((name, value)) = part.split_once('\u{1}') else { continue };
        if !name.is_empty() && !value.is_empty() {
            kept.retain(|(other, _)| other != name);
            kept.push((name.to_owned(), value.to_owned()));
        }
    }
    kept
}

/// A message that RocketMQ keeps as it was sent.
fn is_taken(wire: &Wire) -> Result<(), String> {
    let text = wire.text();
    let reserved = wire.properties.iter().find(|(n, _)| n != GROUP && names::is_reserved(n));
    match reserved {
        _ if text.len() > MOST => Err(format!("{} bytes of properties", text.len())),
        _ if wire.body.is_empty() => Err("no body".into()),
        _ if stored(&text) != wire.properties => Err(format!("not all is kept: {wire:?}")),
        Some((name, _)) => Err(format!("{name} is RocketMQ's")),
        None => Ok(()),
    }
}

/// What a source that knows copies makes of it.
pub(crate) fn received(wire: &Wire) -> Outgoing {
    let stored = stored(&wire.text());
    let plain = stored.iter().filter(|(name, _)| !names::is_system(name)).cloned();
    let mut headers: Headers = plain.collect();
    let group = stored.iter().find(|(name, _)| name == GROUP).map(|(_, value)| value.clone());
    let (mut ordering_key, mut body) = (group, wire.body.clone());
    packed::restore(true, &mut headers, &mut ordering_key, &mut body);
    Outgoing { headers, ordering_key, body, ..Outgoing::default() }
}

fn property<'a>(wire: &'a Wire, name: &str) -> Option<&'a str> {
    wire.properties.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// C-11: the metadata are plain properties, whatever else there is.
#[test]
fn c_11_the_metadata_are_properties_of_their_own() {
    let headers: Headers =
        [("KEYS", "o-1 o-2"), ("TAGS", "paid"), ("own", "x")].into_iter().collect();
    let wire = normal(copy_of(headers, b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    for (name, value) in stamp().pairs() {
        assert_eq!(property(&wire, name), Some(value.as_str()), "{name}");
    }
    let own = ["KEYS", "TAGS", "own", "content-type", GROUP].map(|name| property(&wire, name));
    let expected = ["o-1 o-2", "paid", "x", "text/plain", "key"].map(Some);
    assert_eq!((own, wire.properties.len()), (expected, 8 + 5));
    assert_eq!((&wire.body[..], wire.group.as_deref()), (&b"body"[..], Some("key")));
}

#[test]
fn c_11_a_header_that_can_be_no_property_is_packed_and_undone() {
    let headers: Headers = [
        ("", HeaderValue::from("no name")),
        ("empty", HeaderValue::from("")),
        ("CORRELATION_ID", HeaderValue::from("c-1")),
        ("na\u{1}me", HeaderValue::from("v")),
        ("parted", HeaderValue::from("a\u{2}b\u{1}c")),
        ("bytes", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ("fine", HeaderValue::from("first\0")),
        ("fine", HeaderValue::from("second")),
        ("number", HeaderValue::Number("12".into())),
        (PACKED, HeaderValue::from("a sender's own")),
        (ENCODING, HeaderValue::from(EMPTY)),
        ("pumphouse-types", HeaderValue::from("another transport's")),
    ]
    .into_iter()
    .collect();
    let wire = normal(copy_of(headers.clone(), b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    for plain in ["fine", "number", "pumphouse-types"] {
        assert!(property(&wire, plain).is_some(), "{plain}");
    }
    let read = received(&wire);
    assert_eq!(sorted(&read.headers), sorted(&headers_of(&copy_of(headers, b""))));
    assert_eq!((&read.body[..], read.ordering_key.as_deref()), (&b"body"[..], Some("key")));
}

/// C-11: a header of another transport with a name of RocketMQ's is none of RocketMQ's properties on the copy, which
/// would delay it or settle with it; who knows copies finds it again. A counter travels nowhere.
#[test]
fn c_11_a_header_with_a_name_of_rocketmqs_is_packed_and_undone() {
    let system = names::SYSTEM.into_iter().chain(["__RMQ.TRANSIENT.X", "BUYER_ID", "TTL"]);
    let system = system.filter(|name| !metadata::COUNTERS.contains(name));
    let mut headers: Headers = system.map(|name| (name, "9")).collect();
    let whole = headers_of(&copy_of(headers.clone(), b""));
    for counter in metadata::COUNTERS.into_iter().chain(["deliveryCount"]) {
        headers.set(counter, "9");
    }
    let wire = normal(copy_of(headers, b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    // The metadata, the content type, the group, and what is packed.
    assert_eq!((wire.properties.len(), &wire.body[..]), (8 + 3, &b"body"[..]));
    assert_eq!(property(&wire, "deliveryCount"), Some("3"));
    let read = received(&wire);
    assert_eq!(sorted(&read.headers), sorted(&whole));
    assert_eq!(
        (read.headers.text("POP_CK"), read.headers.text("RECONSUME_TIME")),
        (Some("9"), None)
    );
    assert_eq!(read.ordering_key.as_deref(), Some("key"), "the header is no group");
}

/// C-11: the description gives way before a header does.
#[test]
fn c_11_the_description_gives_way_to_the_headers() {
    let sized = |size: usize| {
        let headers = [("large", "v".repeat(size))].into_iter().collect();
        let stamp = Stamp { message: "ä".repeat(7_000), ..stamp() };
        let wire = normal(Outgoing { stamp: Some(stamp), ..copy_of(headers, b"body") });
        let wire = wire.expect("it fits");
        is_taken(&wire).expect("taken");
        wire
    };
    let description = |wire: &Wire| property(wire, metadata::REJECTION_MESSAGE).map(str::len);
    assert_eq!(description(&sized(10_000)), Some(14_000));
    let shortened = sized(25_000);
    let length = description(&shortened).expect("a description");
    assert!((5_000..7_000).contains(&length), "{length}");
    assert!(property(&shortened, metadata::REJECTION_MESSAGE).expect("one").ends_with("ä…"));
    assert_eq!(shortened.body, "body");
    let shortest = sized(31_000);
    assert!(description(&shortest).is_some_and(|length| length <= LONGEST_METADATA));
    assert!(shortest.body.starts_with(b"body{"));
    assert_eq!(received(&shortest).body, "body");
}

/// C-11: the most that an original can have stands behind the body, and what others look at first does not.
#[test]
fn c_11_too_many_headers_stand_behind_the_body() {
    let numbered = (0..300).map(|at| (format!("h{at:0>3}"), HeaderValue::from("v".repeat(95))));
    let mut headers: Headers = numbered.collect();
    headers.set("traceparent", "00-…-01");
    headers.set("KEYS", "k".repeat(2_000));
    let wire = normal(copy_of(headers.clone(), b"body")).expect("it fits");
    is_taken(&wire).expect("taken");
    assert!(property(&wire, "traceparent").is_some() && property(&wire, "KEYS").is_some());
    assert!(wire.body.starts_with(b"body{"));
    let read = received(&wire);
    assert_eq!(sorted(&read.headers), sorted(&headers_of(&copy_of(headers, b""))));
    assert_eq!(read.body, "body");
}

/// C-11: to a FIFO topic it carries the original's group, or its id.
#[test]
fn c_11_every_copy_for_an_ordered_topic_has_a_group() {
    let long = "k".repeat(LONGEST_GROUP + 1);
    let cases: [(Option<&str>, Kind, Option<&str>); 6] = [
        (Some("key"), Kind::Fifo, Some("key")),
        (Some("key"), Kind::Normal, Some("key")),
        (None, Kind::Normal, None),
        (Some(""), Kind::Normal, None),
        (None, Kind::Fifo, Some("m-1")),
        (Some(""), Kind::Fifo, Some("m-1")),
    ];
    for (key, kind, expected) in cases {
        let message =
            Outgoing { ordering_key: key.map(str::to_owned), ..copy_of(Headers::new(), b"body") };
        let wire = fit(message, kind, MESSAGE_ID).expect("it fits");
        assert_eq!(
            (wire.group.as_deref(), property(&wire, GROUP)),
            (expected, expected),
            "{key:?}"
        );
        assert_eq!(received(&wire).ordering_key.as_deref(), key.filter(|it| !it.is_empty()));
    }
    for odd in [long.as_str(), "a\u{1}", "a\u{2}"] {
        let message =
            Outgoing { ordering_key: Some(odd.into()), ..copy_of(Headers::new(), b"body") };
        let wire = fit(message, Kind::Fifo, MESSAGE_ID).expect("it fits");
        is_taken(&wire).expect("taken");
        assert_eq!(wire.group.as_ref().map(String::len), Some(64));
        assert_eq!(received(&wire).ordering_key.as_deref(), Some(odd));
    }
}

/// An empty property is dropped by the broker, and C-11 wants all eight.
#[test]
fn c_11_empty_metadata_are_put_in_again() {
    let stamp = Stamp { original_message_type: String::new(), message: String::new(), ..stamp() };
    let message = Outgoing { stamp: Some(stamp), ..copy_of(Headers::new(), b"body") };
    let wire = normal(message).expect("it fits");
    is_taken(&wire).expect("taken");
    let read = received(&wire).headers;
    assert_eq!(
        (read.text("originalMessageType"), read.text("rejectionMessage")),
        (Some(""), Some(""))
    );
    let odd = Stamp { message: "a\u{1}b\u{2}".into(), ..self::stamp() };
    let wire = normal(Outgoing { stamp: Some(odd), ..copy_of(Headers::new(), b"body") });
    assert_eq!(property(&wire.expect("it fits"), "rejectionMessage"), Some("a\u{fffd}b\u{fffd}"));
}

/// C-7: the reason is what tells a copy; a foreign property of our name is left alone.
#[test]
fn c_7_foreign_properties_of_our_names_are_left_alone() {
    let undone = |pairs: &[(&str, &str)], body: &'static str| {
        let mut headers: Headers = pairs.iter().copied().collect();
        let (mut key, mut body) = (Some("k".to_owned()), Bytes::from_static(body.as_bytes()));
        packed::restore(true, &mut headers, &mut key, &mut body);
        (headers, key, body)
    };
    let packed = r#"{"headers":[["a","String","b"]],"orderingKey":"other"}"#;
    let (headers, key, _) = undone(&[(PACKED, packed)], "body");
    assert_eq!((headers.text(PACKED), key.as_deref()), (Some(packed), Some("k")));
    for foreign in ["", "7", "not json", r#"{"behindBody":9}"#, r#"{"behindBody":2}"#] {
        let (headers, _, body) = undone(&[(PACKED, foreign), ("rejectionReason", "None")], "body");
        assert_eq!((headers.text(PACKED), &body[..]), (Some(foreign), &b"body"[..]));
    }
    let spoof = r#"{"headers":[["deliveryCount","String","9"],7,["a"]]}"#;
    let (headers, ..) = undone(&[(PACKED, spoof), ("rejectionReason", "None")], "body");
    assert_eq!(headers.text("deliveryCount"), None);
    let (headers, _, body) = undone(&[(ENCODING, EMPTY)], "not empty");
    assert_eq!((headers.text(ENCODING), &body[..]), (Some(EMPTY), &b"not empty"[..]));
}

#[test]
fn an_ordinary_message_goes_as_it_is_or_is_refused_by_name() {
    let sent = |headers: Headers| normal(message_of(headers));
    let refused = |headers: Headers| sent(headers).expect_err("refused");
    let one = |name: &str, value: HeaderValue| -> Headers { [(name, value)].into_iter().collect() };
    assert!(refused([("twice", "1"), ("twice", "2")].into_iter().collect()).contains("\"twice\""));
    let reserved =
        ["DELAY", "TIMER_DELAY_SEC", "UNIQ_KEY", "POP_CK", "CORRELATION_ID", "WAIT", GROUP];
    for name in reserved.into_iter().chain([PACKED, ENCODING]) {
        assert!(refused(one(name, "1".into())).contains(&format!("{name:?}")), "{name}");
    }
    for (name, value) in [("", "1"), ("empty", ""), ("parted", "a\u{2}"), ("na\u{1}me", "v")] {
        assert!(refused(one(name, value.into())).contains(&format!("{name:?}")), "{name}");
    }
    assert!(refused(one("raw", HeaderValue::Binary("b".into()))).contains("\"raw\""));
    let number = sent(one("n", HeaderValue::Number("7".into()))).expect("sent");
    assert_eq!(number.properties, [("n".to_owned(), "7".to_owned())]);
    let keyed = sent([("KEYS", "a b"), ("TAGS", "t")].into_iter().collect()).expect("sent");
    assert_eq!(keyed.text(), "KEYS\u{1}a b\u{2}TAGS\u{1}t\u{2}");
    assert!(sent(one("l", "v".repeat(MOST - 3).into())).is_ok());
    assert!(refused(one("l", "v".repeat(MOST - 2).into())).contains("31743"));
    let odd = Outgoing { ordering_key: Some("a\u{1}".into()), ..message_of(Headers::new()) };
    assert!(normal(odd).expect_err("refused").contains("ordering key"));
}

/// To an ordered topic, what has no key has its own.
#[test]
fn an_ordinary_message_for_an_ordered_topic_has_a_group() {
    let wire = fit(message_of(Headers::new()), Kind::Fifo, MESSAGE_ID).expect("it fits");
    assert_eq!(wire.group.as_deref(), Some(MESSAGE_ID));
}

/// RocketMQ takes no message without a body, but handlers may.
#[test]
fn a_message_of_nothing_is_marked() {
    for message in [Outgoing::default(), copy_of(Headers::new(), b"")] {
        let wire = normal(message).expect("it fits");
        is_taken(&wire).expect("taken");
        let read = received(&wire);
        assert!(read.body.is_empty() && read.headers.get(ENCODING).is_none());
    }
    let large = Outgoing { body: vec![0; MOST_BODY + 1].into(), ..Outgoing::default() };
    assert!(normal(large).expect_err("refused").contains("16252928"));
}

/// C-11: the mark of an empty body is told from the original's own header of its name.
#[test]
fn c_11_a_header_named_as_the_mark_is_kept_beside_it() {
    for body in ["", EMPTY_BODY, "body"] {
        for value in [EMPTY, "other"] {
            let own: Headers = [(ENCODING, value), (ENCODING, "again")].into_iter().collect();
            let sent = copy_of(own, body.as_bytes());
            let read = received(&normal(sent.clone()).expect("it fits"));
            assert_eq!(sorted(&read.headers), sorted(&headers_of(&sent)), "{body:?}, {value:?}");
            assert_eq!(read.body, sent.body, "{value:?}");
        }
    }
}

/// By name: properties have no order.
fn sorted(headers: &Headers) -> Vec<(String, String)> {
    let metadata = |name: &str| metadata::RESERVED.contains(&name);
    let own = headers.iter().filter(|(name, _)| !metadata(name));
    let mut all: Vec<_> =
        own.map(|(name, value)| (name.to_owned(), format!("{value:?}"))).collect();
    all.sort();
    all
}

/// What of a message is headers on its way.
fn headers_of(message: &Outgoing) -> Headers {
    let content_type = message.content_type.iter();
    let content_type = content_type.map(|it| (CONTENT_TYPE.to_owned(), it.as_str().into()));
    let own = message.headers.iter().map(|(name, value)| (name.to_owned(), value.clone()));
    content_type.chain(own).collect()
}

fn header() -> impl Strategy<Value = (String, HeaderValue)> {
    let value = prop_oneof![
        6 => ".{0,40}".prop_map(HeaderValue::Text),
        2 => "[ab\u{1}\u{2}\u{0}]{0,4}".prop_map(HeaderValue::Text),
        1 => ".{900,1100}".prop_map(HeaderValue::Text),
        2 => "[0-9]{0,40}".prop_map(HeaderValue::Number),
        1 => proptest::collection::vec(any::<u8>(), 0..3_000)
            .prop_map(|bytes| HeaderValue::Binary(Bytes::from(bytes))),
    ];
    let name = prop_oneof![
        8 => "[a-zA-Zä_-]{1,12}",
        2 => "[ -~\u{1}\u{2}]{0,3}",
        1 => "[a-z]{250,270}",
        1 => proptest::sample::select(vec!["KEYS", "TAGS", "DELAY", "POP_CK", "TTL", GROUP])
            .prop_map(str::to_owned),
        1 => Just(PACKED.to_owned()),
        1 => Just(ENCODING.to_owned()),
    ];
    (name, value)
}

pub(crate) fn any_copy() -> impl Strategy<Value = Outgoing> {
    let headers = prop_oneof![
        3 => proptest::collection::vec(header(), 0..12),
        1 => proptest::collection::vec(header(), 85..160),
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    let key = proptest::option::of(prop_oneof![".{1,20}", ".{900,1100}", "[a\u{1}\u{2}]{1,2}"]);
    let description = prop_oneof![3 => "\\PC{0,1500}", 1 => "\\PC{10000,20000}"];
    (headers, body, key, description).prop_map(|(headers, body, ordering_key, description)| {
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

    /// C-7, C-11: whatever the original carries, its copy is one that RocketMQ takes, and is read as the original.
    #[test]
    fn c_11_every_copy_fits_and_is_read_as_the_original(sent in any_copy(), fifo in any::<bool>()) {
        let kind = if fifo { Kind::Fifo } else { Kind::Normal };
        let wire = fit(sent.clone(), kind, MESSAGE_ID).map_err(TestCaseError::fail)?;
        is_taken(&wire).map_err(TestCaseError::fail)?;
        prop_assert!(!fifo || wire.group.is_some());
        let read = received(&wire);
        prop_assert_eq!(sorted(&read.headers), sorted(&headers_of(&sent)));
        prop_assert_eq!(read.ordering_key, sent.ordering_key);
        prop_assert_eq!(read.body, sent.body);
        for name in metadata::RESERVED {
            prop_assert!(read.headers.get(name).is_some(), "{}", name);
        }
    }
}
