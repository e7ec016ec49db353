use std::time::Duration;

use aws_sdk_sqs::primitives::Blob;
use pumphouse_contract::copy::{is_routed_copy, stamped_count};
use pumphouse_contract::{Count, Mono, Outgoing, Reason, Stamp};

use super::*;
use crate::TYPES;
use crate::outgoing::{Shape, fit};

const RAW: Reading = Reading { envelope: Envelope::Raw, rejected: false };
const REJECTED: Reading = Reading { envelope: Envelope::Raw, rejected: true };

fn lease() -> Lease {
    Lease::from(Mono(Duration::from_secs(7)), Duration::from_secs(30))
}

/// What SQS hands over of a message that was sent so.
fn received_again(message: Outgoing, fifo: bool) -> SqsMessage {
    let wire = fit(message, Shape { fifo, limit: None }).expect("it fits");
    let attributes = wire.attributes.into_iter().map(|one| one.into_sdk().expect("an attribute"));
    let mut builder = SqsMessage::builder()
        .message_id("m-2")
        .receipt_handle("handle")
        .body(wire.body)
        .set_message_attributes(Some(attributes.collect()))
        .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "1");
    if let Some(group) = wire.group {
        builder = builder.attributes(MessageSystemAttributeName::MessageGroupId, group);
    }
    builder.build()
}

fn read(message: SqsMessage, reading: Reading) -> Message {
    let delivery = delivery(message, lease(), reading);
    assert_eq!(delivery.undecodable, None);
    Message::clone(&delivery.message)
}

fn text(body: &str) -> aws_sdk_sqs::types::builders::MessageBuilder {
    SqsMessage::builder().message_id("m").receipt_handle("handle").body(body)
}

fn copy() -> Outgoing {
    let headers: Headers = [
        ("binary", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ("control", HeaderValue::from("\u{1}")),
        ("pumphouse", HeaderValue::from("a sender's own")),
        ("pumphouse-encoding", HeaderValue::from("base64")),
        ("number", HeaderValue::Number("12".into())),
    ]
    .into_iter()
    .collect();
    Outgoing {
        headers,
        content_type: Some("text/plain".into()),
        ordering_key: Some("a key".into()),
        deduplication_id: Some("id".into()),
        body: Bytes::from_static(b"plain"),
        stamp: Some(Stamp {
            original_topic: "orders".into(),
            original_message_type: String::new(),
            reason: Reason::None,
            message: "no".into(),
            timestamp: Timestamp(0),
            original_message_id: "m-1".into(),
            rejected_by: "orders/acme/orders@abc".into(),
            deliveries: 3,
        }),
    }
}

/// C-7, C-11: read where copies are honoured, a copy is the original and its metadata.
#[test]
fn c_11_a_copy_is_read_as_the_original_with_its_metadata() {
    for fifo in [false, true] {
        let sent = copy();
        let read = read(received_again(sent.clone(), fifo), REJECTED);
        assert!(is_routed_copy(&read.headers));
        assert_eq!(stamped_count(&read.headers), Count(3));
        for (name, value) in sent.headers.iter() {
            assert_eq!(read.headers.get(name), Some(value), "{name}");
        }
        assert_eq!(read.headers.len(), sent.headers.len() + 8);
        assert_eq!((read.content_type, read.ordering_key), (sent.content_type, sent.ordering_key));
        assert_eq!(read.body, sent.body);
    }
}

/// C-7: elsewhere a sender can't choose its own count.
#[test]
fn c_7_elsewhere_the_metadata_is_an_ordinary_header() {
    let read = read(received_again(copy(), false), RAW);
    assert!(!is_routed_copy(&read.headers));
    assert!(read.headers.text(PACKED).is_some_and(|text| text.contains("rejectionReason")));
}

#[test]
fn c_7_the_plain_form_is_recognised_too_and_other_json_left_alone() {
    let mut message = copy();
    message.stamp = None;
    message.headers = [("rejectionReason", "None"), ("deliveryCount", "2")].into_iter().collect();
    let plain = read(received_again(message, false), REJECTED);
    assert!(is_routed_copy(&plain.headers));
    assert_eq!(stamped_count(&plain.headers), Count(2));
    let attribute = |text: &str| {
        MessageAttributeValue::builder().data_type("String").string_value(text).build().expect("ok")
    };
    let other = text("b").message_attributes(PACKED, attribute("{\"a\":1}")).build();
    assert_eq!(read(other, REJECTED).headers.text(PACKED), Some("{\"a\":1}"));
}

/// C-6: the count is the broker's own field.
#[test]
fn c_6_the_count_is_the_brokers_and_no_attribute() {
    let number = MessageAttributeValue::builder().data_type("Number").string_value("9");
    let number = number.build().expect("ok");
    let message = |count: &str| {
        text("b")
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, count)
            .message_attributes("ApproximateReceiveCount", number.clone())
            .build()
    };
    for (wire, presented) in [("1", 0), ("3", 2), ("0", 0), ("-4", 0), ("many", 0)] {
        assert_eq!(lacking(&message(wire)), None);
        assert_eq!(delivery(message(wire), lease(), RAW).counted.count(), Count(presented));
    }
    assert_eq!(lacking(&text("b").build()), Some(Lacking::Count));
    assert_eq!(lacking(&SqsMessage::builder().build()), Some(Lacking::Identity));
}

#[test]
fn a_foreign_message_is_read_with_everything_that_sqs_says_of_it() {
    use MessageSystemAttributeName as Name;
    let label = MessageAttributeValue::builder().data_type("String.uuid").string_value("u");
    let bytes =
        MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new(*b"\0"));
    let message = text("hello")
        .attributes(Name::ApproximateReceiveCount, "2")
        .attributes(Name::SentTimestamp, "1500")
        .attributes(Name::ApproximateFirstReceiveTimestamp, "1600")
        .attributes(Name::MessageGroupId, "g")
        .attributes(
            Name::AwsTraceHeader,
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        )
        .message_attributes("id", label.build().expect("ok"))
        .message_attributes("bytes", bytes.build().expect("ok"))
        .build();
    let delivery = delivery(message, lease(), RAW);
    let message = &delivery.message;
    assert_eq!(message.body, "hello");
    assert_eq!(message.published_at, Some(Timestamp(1_500)));
    assert_eq!(delivery.first_received_at, Some(Timestamp(1_600)));
    assert_eq!(message.ordering_key.as_deref(), Some("g"));
    assert_eq!(message.headers.text("id"), Some("u"));
    assert_eq!(message.headers.text(TYPES), Some(r#"{"id":"String.uuid"}"#));
    assert_eq!(message.headers.get("bytes"), Some(&HeaderValue::Binary(Bytes::from_static(b"\0"))));
    let traceparent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
    assert_eq!(message.headers.text("traceparent"), Some(traceparent));
    assert_eq!(receipt::open(&delivery.receipt), Some((lease().received, "handle")));
}

/// FR-06: what can't be decoded is handed over with its reason and its body.
#[test]
fn fr_06_what_cannot_be_decoded_is_handed_over_with_its_reason() {
    let enveloped = Reading { envelope: Envelope::Enveloped, rejected: false };
    let unwrapped = delivery(text("plain").build(), lease(), enveloped);
    assert!(unwrapped.undecodable.is_some_and(|why| why.contains("envelope")));
    assert_eq!(unwrapped.message.body, "plain");
    let marked = MessageAttributeValue::builder().data_type("String").string_value("base64");
    let marked = text("%").message_attributes(ENCODING, marked.build().expect("ok")).build();
    let decoded = delivery(marked, lease(), RAW);
    assert!(decoded.undecodable.is_some_and(|why| why.contains("base64")));
    assert_eq!(decoded.message.body, "%");
}

/// A body that looks like an envelope is none where the configuration says raw.
#[test]
fn an_envelope_is_opened_only_where_the_configuration_says_so() {
    let body = r#"{"Type":"Notification","TopicArn":"t","Message":"inside","MessageAttributes":
        {"content-type":{"Type":"String","Value":"text/plain"}}}"#;
    assert_eq!(read(text(body).build(), RAW).body, body);
    let enveloped = Reading { envelope: Envelope::Enveloped, rejected: false };
    let opened = read(text(body).build(), enveloped);
    assert_eq!(
        (opened.body.as_ref(), opened.content_type.as_deref()),
        (&b"inside"[..], Some("text/plain"))
    );
}
