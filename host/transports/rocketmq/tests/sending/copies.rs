use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pumphouse_contract::copy::{is_routed_copy, names, stamped_count};
use pumphouse_contract::{Count, HeaderValue, Headers, Message, Outgoing};
use pumphouse_rocketmq::{Kind, PACKED};
use pumphouse_test_brokers::JavaMessage;

use crate::common::*;

/// What is published is what RocketMQ's own client reads, and has the id that was told.
#[tokio::test]
async fn another_program_reads_what_is_published() {
    let (server, name) = (server().await, unique("read"));
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    let headers: Headers =
        [("KEYS", "o-1 o-2"), ("TAGS", "paid"), ("own", "ü \0 {\"\n}")].into_iter().collect();
    let message =
        Outgoing {
            headers, content_type: Some("text/plain".into()), ..keyed("\0body ü", "a key")
        };
    let id = sink.publish(message).await.expect("published");
    let got = foreign(server, &name, 1).await.pop().expect("one");
    assert_eq!((&got.id, &got.body[..]), (&id, "\0body ü".as_bytes()));
    assert_eq!((got.tag.as_deref(), got.keys.as_deref()), (Some("paid"), Some("o-1 o-2")));
    assert_eq!(got.group.as_deref(), Some("a key"));
    let own = ["own", "content-type"].map(|name| got.properties.get(name).map(String::as_str));
    assert_eq!(own, [Some("ü \0 {\"\n}"), Some("text/plain")]);
    assert!((got.store_ms - got.born_ms).abs() < 10_000, "{got:?}");
    // And so does our own source.
    let source = open(&rocketmq, spec(&name, Kind::Normal)).await;
    let ours = one(source.as_ref()).await;
    assert_eq!((&ours.message.id, &ours.message.body[..]), (&id, "\0body ü".as_bytes()));
    assert_eq!(ours.message.headers.len(), 3, "{:?}", ours.message.headers);
    assert_eq!(ours.message.headers.text("KEYS"), Some("o-1 o-2"));
    assert_eq!(ours.message.content_type.as_deref(), Some("text/plain"));
    ack(source.as_ref(), &ours).await;
    rocketmq.close().await;
}

/// A body of nothing, which RocketMQ does not take, and one of the most that it does.
#[tokio::test]
async fn bodies_of_every_size_arrive_byte_for_byte() {
    let (server, name) = (server().await, unique("sizes"));
    let rocketmq = connect(&server.namesrv()).await;
    let source = open(&rocketmq, spec(&name, Kind::Normal)).await;
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    for size in [0, 1, 5_000, 4 * 1024 * 1024] {
        let body: Bytes = (0..size).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
        let message = Outgoing { body: body.clone(), ..Outgoing::default() };
        sink.publish(message).await.expect("published");
        let got = one(source.as_ref()).await;
        assert!(got.message.body == body && got.message.headers.is_empty(), "{size}");
        ack(source.as_ref(), &got).await;
    }
    rocketmq.close().await;
}

/// C-11, C-7: whatever an original of another program's has, its copy has, read by us.
#[tokio::test]
async fn c_11_a_copy_is_the_original_and_its_metadata() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let (server, name, dead) = (server().await, unique("orders"), unique("dead"));
        let rocketmq = connect(&server.namesrv()).await;
        let source = open(&rocketmq, spec(&name, kind)).await;
        let destination = sink(&rocketmq, &dead, kind).await;
        let copies = open(&rocketmq, copies(&dead, kind)).await;
        let message = JavaMessage::new("\0body").tag("t").key("k 1").group("a key");
        let message = message.property("own", "ä {}").property("number", "7");
        let sent = server.java_client().send(&name, &[message]).await.expect("sent");
        let original = one(source.as_ref()).await;
        assert_eq!(original.message.id, sent[0].id);
        let copy = rejected(&original, "no \u{1} good");
        destination.publish(copy).await.expect("published");
        ack(source.as_ref(), &original).await;
        let copy = one(copies.as_ref()).await;
        let headers = &copy.message.headers;
        for (name, value) in original.message.headers.iter() {
            assert_eq!(headers.get(name), Some(value), "{name}");
        }
        // The eight names of the metadata, and nothing else.
        assert_eq!(headers.len(), original.message.headers.len() + 8, "{headers:?}");
        assert!(is_routed_copy(headers));
        assert_eq!(stamped_count(headers), Count(1));
        assert_eq!(headers.text(names::ORIGINAL_MESSAGE_TYPE), Some(""));
        assert_eq!(copy.message.ordering_key.as_deref(), Some("a key"));
        assert_eq!(copy.message.body, original.message.body);
        ack(copies.as_ref(), &copy).await;
        rocketmq.close().await;
    }
}

/// C-11: the metadata are what other programs read as properties; nothing of RocketMQ's own travelled.
#[tokio::test]
async fn c_11_metadata_are_readable_by_other_programs() {
    let (server, name, dead) = (server().await, unique("orders"), unique("dead"));
    let rocketmq = connect(&server.namesrv()).await;
    let source = open(&rocketmq, spec(&name, Kind::Normal)).await;
    let destination = sink(&rocketmq, &dead, Kind::Normal).await;
    let message = JavaMessage::new("body").tag("t").property("own", "x");
    server.java_client().send(&name, &[message]).await.expect("sent");
    let original = one(source.as_ref()).await;
    let id = destination.publish(rejected(&original, "ü")).await.expect("published");
    ack(source.as_ref(), &original).await;
    let got = foreign(server, &dead, 1).await.pop().expect("one");
    let expected: BTreeMap<&str, &str> = [
        ("own", "x"),
        ("TAGS", "t"),
        ("originalTopic", "orders"),
        ("rejectionReason", "Unacceptable"),
        ("rejectionMessage", "ü"),
        ("rejectionTimestamp", "2026-11-30T02:50:14.123Z"),
        ("originalMessageId", &original.message.id),
        ("rejectedBy", "orders/acme/orders@abc"),
        ("deliveryCount", "1"),
    ]
    .into();
    for (name, value) in &expected {
        assert_eq!(got.properties.get(*name).map(String::as_str), Some(*value), "{name}");
    }
    // What the broker and its client add to any message.
    let system = ["UNIQ_KEY", "CLUSTER", "MSG_REGION", "TRACE_ON", "MIN_OFFSET", "MAX_OFFSET"];
    let client = ["CONSUME_START_TIME", "WAIT"];
    for (name, value) in &got.properties {
        let known = expected.contains_key(name.as_str())
            || system.iter().chain(&client).any(|other| other == name);
        assert!(known, "{name}: {value}");
    }
    assert_eq!((got.id.as_str(), got.reconsume_times), (id.as_str(), 0));
    rocketmq.close().await;
}

/// C-11: what can be no property, and more than there is room for.
#[tokio::test]
async fn c_11_headers_that_are_no_properties_survive_a_copy() {
    let (server, dead) = (server().await, unique("odd"));
    let rocketmq = connect(&server.namesrv()).await;
    let destination = sink(&rocketmq, &dead, Kind::Normal).await;
    let copies = open(&rocketmq, copies(&dead, Kind::Normal)).await;
    let odd: Headers = [
        ("", HeaderValue::from("no name")),
        ("empty", HeaderValue::from("")),
        ("CORRELATION_ID", HeaderValue::from("c-1")),
        ("POP_CK", HeaderValue::from("7 1700000000000 1000 3 1 broker-9 5 9")),
        ("UNIQ_KEY", HeaderValue::from("another's")),
        ("__SHARDINGKEY", HeaderValue::from("another's")),
        ("__RMQ.TRANSIENT.X", HeaderValue::from("1")),
        ("parted", HeaderValue::from("a\u{2}b\u{1}c")),
        ("bytes", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ("number", HeaderValue::Number("12".into())),
        (PACKED, HeaderValue::from("a sender's own")),
    ]
    .into_iter()
    .collect();
    let large = (0..40).map(|at| (format!("h{at}"), HeaderValue::from("ü".repeat(1_000))));
    let large: Headers = large.collect();
    for headers in [odd, large] {
        let message = Message {
            id: "m-1".into(),
            headers: headers.clone(),
            body: Bytes::from_static(b"body"),
            ..Message::default()
        };
        let copy = copy_of(&message, Count(2), &"d".repeat(20_000));
        destination.publish(copy).await.expect("published");
        let copy = one(copies.as_ref()).await;
        for (name, value) in headers.iter() {
            assert_eq!(copy.message.headers.get(name), Some(value), "{name}");
        }
        assert_eq!(copy.message.headers.len(), headers.len() + 8);
        assert_eq!((&copy.message.body[..], &copy.message.ordering_key), (&b"body"[..], &None));
        ack(copies.as_ref(), &copy).await;
    }
    rocketmq.close().await;
}

/// C-11: a message that was delayed once makes no delayed copy.
#[tokio::test]
async fn c_11_the_copy_of_a_delayed_message_comes_at_once() {
    let (server, name, dead) = (server().await, unique("delayed"), unique("dead"));
    let rocketmq = connect(&server.namesrv()).await;
    let source = open(&rocketmq, spec(&name, Kind::Normal)).await;
    let destination = sink(&rocketmq, &dead, Kind::Normal).await;
    let copies = open(&rocketmq, copies(&dead, Kind::Normal)).await;
    let message = JavaMessage::new("body").delay(Duration::from_secs(2));
    server.java_client().send(&name, &[message]).await.expect("sent");
    let original = one(source.as_ref()).await;
    let mut copy = rejected(&original, "no");
    // As another transport's original may have it.
    copy.headers.set("DELAY", "9");
    copy.headers.set("TIMER_DELAY_SEC", "3600");
    let begun = Instant::now();
    destination.publish(copy).await.expect("published");
    let copy = one(copies.as_ref()).await;
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let shown = ["DELAY", "TIMER_DELAY_SEC"].map(|name| copy.message.headers.text(name));
    assert_eq!(shown, [Some("9"), Some("3600")]);
    assert_eq!(copy.message.headers.len(), 8 + 2, "{:?}", copy.message.headers);
    rocketmq.close().await;
}
