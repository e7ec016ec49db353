use bytes::Bytes;
use proptest::prelude::*;
use pumphouse_contract::{Headers, Reason, Stamp, Timestamp};

use super::*;
use crate::attributes::is_allowed;
use crate::packed::unpack;

const QUEUE: Shape = Shape { fifo: false, limit: Some(262_144) };
const FIFO: Shape = Shape { fifo: true, limit: Some(262_144) };

fn stamp() -> Stamp {
    Stamp {
        original_topic: "orders".into(),
        original_message_type: "order".into(),
        reason: Reason::DeliveryError,
        message: "why\0".into(),
        timestamp: Timestamp(0),
        original_message_id: "m-1".into(),
        rejected_by: "orders/acme/orders@abc".into(),
        deliveries: 3,
    }
}

fn copy(headers: Headers, body: &'static [u8]) -> Outgoing {
    Outgoing {
        headers,
        content_type: Some("text/plain".into()),
        ordering_key: Some("key".into()),
        deduplication_id: Some("orders/m-1/DeliveryError".into()),
        body: Bytes::from_static(body),
        stamp: Some(stamp()),
    }
}

fn numbered(count: usize) -> Headers {
    (0..count).map(|at| (format!("h{at}"), HeaderValue::from("v"))).collect()
}

fn packed_in(wire: &Wire) -> Packed {
    let attribute = wire.attributes.iter().find(|one| one.name == PACKED).expect("metadata");
    unpack(attribute.value.as_str().expect("a text")).expect("metadata")
}

/// FR-08: own attributes from seven to ten, with a media type and a trace beside them.
#[test]
fn fr_08_a_copy_has_at_most_ten_attributes_and_loses_none() {
    for count in 7..=10 {
        let mut headers = numbered(count);
        headers.set("traceparent", "00-…-01");
        let wire = fit(copy(headers, b"\0"), QUEUE).expect("it fits");
        assert!(wire.attributes.len() <= MOST, "{count}: {}", wire.attributes.len());
        let packed = packed_in(&wire);
        let own = wire.attributes.len() - 2 + packed.headers.len();
        assert_eq!(own, count + 2, "{count}");
        let plain = |name: &str| wire.attributes.iter().any(|one| one.name == name);
        assert!(plain("traceparent") && plain(CONTENT_TYPE) && plain(ENCODING));
    }
}

#[test]
fn c_11_a_header_that_sqs_does_not_take_is_packed() {
    let headers: Headers = [
        ("no name", HeaderValue::from("v")),
        ("empty", HeaderValue::from("")),
        ("control", HeaderValue::from("\u{1}")),
        ("n", HeaderValue::Number("1e9".into())),
        ("fine", HeaderValue::from("first")),
        ("fine", HeaderValue::from("second")),
        (PACKED, HeaderValue::from("a sender's own")),
    ]
    .into_iter()
    .collect();
    let wire = fit(copy(headers, b"text"), QUEUE).expect("it fits");
    let packed: Vec<_> = packed_in(&wire).headers.into_iter().map(|one| one.name).collect();
    assert_eq!(packed, ["no name", "empty", "control", "n", "fine", PACKED]);
}

/// C-11: a key survives a destination that has no groups.
#[test]
fn c_11_the_key_is_the_group_of_a_fifo_queue_and_packed_elsewhere() {
    let wire = fit(copy(Headers::new(), b"text"), FIFO).expect("it fits");
    assert_eq!(wire.group.as_deref(), Some("key"));
    assert_eq!(wire.deduplication.as_deref(), Some("orders/m-1/DeliveryError"));
    assert_eq!(packed_in(&wire).ordering_key, None);
    let wire = fit(copy(Headers::new(), b"text"), QUEUE).expect("it fits");
    assert_eq!((wire.group.as_deref(), wire.deduplication.as_deref()), (None, None));
    assert_eq!(packed_in(&wire).ordering_key.as_deref(), Some("key"));
}

/// FR-09: stable, different for different moves, and never too long.
#[test]
fn fr_09_ids_that_a_fifo_queue_does_not_take_are_hashed() {
    let ids = |key: &str, id: &str| {
        let mut message = copy(Headers::new(), b"text");
        message.ordering_key = Some(key.to_owned());
        message.deduplication_id = Some(id.to_owned());
        let wire = fit(message, FIFO).expect("it fits");
        (wire.group.clone(), wire.deduplication.clone(), packed_in(&wire).ordering_key)
    };
    let long = "x".repeat(129);
    let (group, id, kept) = ids("a key", &long);
    assert!(group.is_some_and(|it| it.len() == 64) && id.clone().is_some_and(|it| it.len() == 64));
    assert_eq!(kept.as_deref(), Some("a key"));
    assert_eq!(ids("a key", &long).1, id);
    assert_ne!(ids("a key", &(long + "y")).1, id);
}

#[test]
fn a_message_without_key_and_id_gets_a_group_and_an_id_of_its_own() {
    let message = Outgoing { body: Bytes::from_static(b"same"), ..Outgoing::default() };
    let one = fit(message.clone(), FIFO).expect("it fits");
    let other = fit(message, FIFO).expect("it fits");
    assert_eq!(one.group.as_deref(), Some(DEFAULT_GROUP));
    assert!(one.deduplication.is_some() && one.deduplication != other.deduplication);
}

#[test]
fn an_ordinary_message_goes_as_it_is_or_is_refused_by_name() {
    let message = |headers: Headers| Outgoing {
        headers,
        body: Bytes::from_static(b"text"),
        ..Outgoing::default()
    };
    assert_eq!(fit(message(numbered(10)), QUEUE).map(|wire| wire.attributes.len()), Ok(10));
    let refused = |headers: Headers| fit(message(headers), QUEUE).expect_err("refused");
    assert!(refused(numbered(11)).contains("11 attributes"));
    assert!(refused([("a b", "v")].into_iter().collect()).contains("\"a b\""));
    assert!(refused([("twice", "1"), ("twice", "2")].into_iter().collect()).contains("\"twice\""));
    assert!(refused([(PACKED, "{}")].into_iter().collect()).contains(PACKED));
    let shape = Shape { fifo: false, limit: Some(3) };
    let text = fit(message(Headers::new()), shape).expect_err("too large");
    assert!(text.contains("4 bytes") && text.contains("takes 3"), "{text}");
}

/// C-11: the description gives way, on a character's border.
#[test]
fn c_11_a_description_is_shortened_to_what_fits() {
    let mut message = copy(numbered(2), b"text");
    message.stamp = Some(Stamp { message: "ä\0".repeat(5_000), ..stamp() });
    let shape = Shape { fifo: false, limit: Some(1_500) };
    let wire = fit(message.clone(), shape).expect("it fits");
    assert!(wire.size() <= 1_500 && wire.size() > 1_480, "{}", wire.size());
    let description = packed_in(&wire).description().to_owned();
    assert!(description.ends_with('…') && description.starts_with('ä'));
    let text = fit(message, Shape { fifo: false, limit: Some(100) }).expect_err("too large");
    assert!(text.contains("takes 100"), "{text}");
}

/// C-11: a type that is most of the message is not carried twice.
#[test]
fn c_11_a_long_type_is_shortened_in_the_metadata_alone() {
    let long = "t".repeat(1_000);
    let headers: Headers = [("type", long.as_str())].into_iter().collect();
    let mut message = copy(headers, b"text");
    message.stamp = Some(Stamp { original_message_type: long.clone(), ..stamp() });
    let wire = fit(message, Shape { fifo: false, limit: Some(2_000) }).expect("it fits");
    assert!(wire.attributes.iter().any(|one| one.value.as_str() == Some(&long)));
}

#[test]
fn where_the_limit_is_unknown_the_smaller_usual_one_is_kept_if_it_can_be() {
    let unknown = Shape { fifo: false, limit: None };
    let mut message = copy(Headers::new(), b"text");
    message.stamp = Some(Stamp { message: "d".repeat(300_000), ..stamp() });
    assert!(fit(message.clone(), unknown).is_ok_and(|wire| wire.size() <= USUAL_LIMITS[0]));
    message.body = Bytes::from(vec![b'b'; 300_000]);
    assert!(fit(message, unknown).is_ok_and(|wire| wire.size() > USUAL_LIMITS[0]));
}

fn header() -> impl Strategy<Value = (String, HeaderValue)> {
    let value = prop_oneof![
        ".{0,40}".prop_map(HeaderValue::Text),
        "[0-9]{0,40}".prop_map(HeaderValue::Number),
        any::<Vec<u8>>().prop_map(|bytes| HeaderValue::Binary(Bytes::from(bytes))),
    ];
    ("[ -~]{0,12}|[a-z]{1,12}", value)
}

/// More than the metadata but its description, and than ten packed names and types, ever need.
const OVERHEAD: usize = 4_096;

proptest! {
    /// C-11, FR-08: whatever the original carries, its copy fits a queue that has room for the metadata, and
    /// nothing is lost.
    #[test]
    fn c_11_every_copy_fits(
        headers in proptest::collection::vec(header(), 0..12),
        body: Vec<u8>,
        description in "\\PC{0,400}|[\\x00-\\x20]{0,400}",
        fifo: bool,
    ) {
        let count = headers.len();
        let size: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        // What is packed may grow: six bytes for a control character.
        let limit = body.len() * 2 + size * 6 + OVERHEAD;
        let mut message = copy(headers.into_iter().collect(), b"");
        message.body = Bytes::from(body);
        message.stamp = Some(Stamp { message: description.clone(), ..stamp() });
        let wire = fit(message, Shape { fifo, limit: Some(limit) }).map_err(TestCaseError::fail)?;
        prop_assert!(wire.attributes.len() <= MOST);
        prop_assert!(wire.size() <= limit);
        prop_assert!(is_allowed(&wire.body) && !wire.body.is_empty());
        for attribute in &wire.attributes {
            prop_assert_eq!(attribute.problem(), None);
        }
        let packed = packed_in(&wire);
        let encoding = wire.attributes.iter().filter(|one| one.name == ENCODING).count();
        prop_assert_eq!(wire.attributes.len() - 1 - encoding + packed.headers.len(), count + 1);
        let kept = packed.description();
        prop_assert!(kept == description || kept.ends_with('…') || kept.is_empty());
    }
}
