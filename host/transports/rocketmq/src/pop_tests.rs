use std::time::Duration;

use bytes::{BufMut, BytesMut};
use pumphouse_contract::{Count, Mono};

use super::*;

const LEASE: Lease = Lease { received: Mono(Duration::ZERO), until: Mono(Duration::from_secs(30)) };

/// What a broker says beside the messages: queue 0 of the topic from offset 5 on, queue 0 of the retry topic from 2 on.
fn header(order_counts: Option<&str>) -> Header {
    Header {
        pop_time: 1_700_000_000_123,
        invisible_time: 30_000,
        revive_qid: 4,
        rest_num: 0,
        start_offset_info: Some("0 0 5;1 0 2".into()),
        msg_offset_info: Some("0 0 5,6,8;1 0 2,5".into()),
        order_count_info: order_counts.map(Into::into),
    }
}

fn answer(header: Header, kind: Kind) -> Answer<'static> {
    let reading = Reading { kind, rejected: false };
    Answer { header, broker: "broker-0", lease: LEASE, reading }
}

fn bytes(offset: i64, times: i32, properties: &str) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i32(0);
    bytes.put_i32(rocketmq_protocol::protocol::body::message_codec::MESSAGE_MAGIC_CODE);
    bytes.put_u32(0);
    bytes.put_i32(0);
    bytes.put_i32(0);
    bytes.put_i64(offset);
    bytes.put_i64(1_000 + offset);
    bytes.put_i32(0);
    bytes.put_i64(1_700_000_000_000);
    bytes.put_slice(&[127, 0, 0, 1, 0, 0, 0, 1]);
    bytes.put_i64(0);
    bytes.put_slice(&[127, 0, 0, 1, 0, 0, 0, 1]);
    bytes.put_i32(times);
    bytes.put_i64(0);
    bytes.put_i32(4);
    bytes.put_slice(b"body");
    bytes.put_u8(6);
    bytes.put_slice(b"orders");
    bytes.put_i16(i16::try_from(properties.len()).expect("short"));
    bytes.put_slice(properties.as_bytes());
    let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
    bytes[..4].copy_from_slice(&length);
    bytes.freeze()
}

fn joined(parts: &[Bytes]) -> Bytes {
    parts.concat().into()
}

fn receipts(deliveries: &[Delivery]) -> Vec<String> {
    let text = |one: &Delivery| one.receipt.as_text().into_owned();
    let theirs = |text: String| text.strip_suffix("|30000").expect("the lease's end").to_owned();
    deliveries.iter().map(text).map(theirs).collect()
}

#[test]
fn a_message_of_the_topic_gets_its_receipt_from_the_answer() {
    let body = joined(&[bytes(5, 0, ""), bytes(8, 0, "a\u{1}b\u{2}")]);
    let got = answer(header(None), Kind::Normal).deliveries(body);
    let expected = [5, 8].map(|offset| format!("5 1700000000123 30000 4 0 broker-0 0 {offset}"));
    assert_eq!(receipts(&got), expected);
    assert!(got.iter().all(|one| one.counted.count() == Count(0)));
}

#[test]
fn a_message_of_the_retry_topic_brings_its_receipt() {
    let stored = "2 1700000000123 30000 4 1 broker-0 0 5";
    let body = bytes(5, 3, &format!("POP_CK\u{1}{stored}\u{2}"));
    let got = answer(header(None), Kind::Normal).deliveries(body);
    assert_eq!((receipts(&got), got[0].counted.count()), (vec![stored.to_owned()], Count(3)));
}

/// A sender that copied a message with all of its properties sent its receipt along; it would settle another message.
#[test]
fn a_receipt_of_another_pop_is_not_taken() {
    let foreign = "POP_CK\u{1}9 1600000000000 1 7 1 broker-9 0 5\u{2}";
    let got = answer(header(None), Kind::Normal)
        .deliveries(joined(&[bytes(5, 0, foreign), bytes(5, 1, foreign)]));
    let expected = [
        "5 1700000000123 30000 4 0 broker-0 0 5".to_owned(),
        "2 1700000000123 30000 4 1 broker-0 0 5".to_owned(),
    ];
    assert_eq!(receipts(&got), expected);
}

/// What the answer does not name can't be settled. It lapses and comes again; the others are handed over.
#[test]
fn a_message_that_can_t_be_settled_is_left_to_its_lease() {
    let body = joined(&[bytes(7, 0, ""), bytes(6, 0, "")]);
    assert_eq!(answer(header(None), Kind::Normal).deliveries(body).len(), 1);
    let silent = Header { start_offset_info: None, msg_offset_info: None, ..header(None) };
    assert!(answer(silent, Kind::Normal).deliveries(bytes(5, 0, "")).is_empty());
}

/// FR-06: a message that is not laid out as it should be is handed over with the bytes that came.
#[test]
fn fr_06_a_message_that_can_t_be_read_is_undecodable() {
    let mut broken = BytesMut::from(&*bytes(6, 0, ""));
    // The length of the topic's name.
    let at = broken.len() - 9;
    broken[at] = 200;
    let broken = broken.freeze();
    let got =
        answer(header(None), Kind::Normal).deliveries(joined(&[broken.clone(), bytes(8, 0, "")]));
    assert_eq!(got.len(), 2);
    assert!(got[0].undecodable.is_some() && got[1].undecodable.is_none());
    assert_eq!(
        (&got[0].message.body, got[0].counted),
        (&broken, pumphouse_contract::Counted::Unreported)
    );
    assert_eq!(receipts(&got)[0], "5 1700000000123 30000 4 0 broker-0 0 6");
}

#[test]
fn nonsense_gives_no_message_and_no_panic() {
    for body in [&b""[..], b"x", &[0; 3], &[0; 64], &[0x7f; 64], &[0xff; 64]] {
        let body = Bytes::copy_from_slice(body);
        assert!(answer(header(None), Kind::Normal).deliveries(body).is_empty());
    }
    for list in ["", ";", " ", "0", "0 0", "x y z", "0 x 5;;1", "0 0 "] {
        let header = Header {
            start_offset_info: Some(list.into()),
            msg_offset_info: Some(list.into()),
            order_count_info: Some(list.into()),
            ..header(None)
        };
        assert!(answer(header, Kind::Fifo).deliveries(bytes(5, 0, "")).is_empty(), "{list:?}");
    }
}

/// C-6: a FIFO topic's counts come with the answer, for a message or for its queue, never from a message's property.
#[test]
fn c_6_a_fifo_topic_s_count_is_in_the_answer() {
    for (counts, expected) in [
        (None, 0),
        (Some(""), 0),
        (Some("0 0 2"), 2),
        (Some("0 qo0%5 3;0 0 2"), 3),
        (Some("0 0 2;0 qo0%5 3"), 3),
        (Some("0 qo0%6 3;0 1 2"), 0),
        (Some("1 0 2"), 0),
        (Some("0 0 -1"), 0),
        (Some("0 0 x"), 0),
    ] {
        let body = bytes(5, 0, "RECONSUME_TIME\u{1}9\u{2}");
        let got = answer(header(counts), Kind::Fifo).deliveries(body);
        assert_eq!(got[0].counted.count(), Count(expected), "{counts:?}");
    }
}
