use std::time::Duration;

use pumphouse_contract::{Count, Mono};

use super::*;

const LEASE: Lease = Lease { received: Mono(Duration::ZERO), until: Mono(Duration::ZERO) };

pub(crate) fn frame(properties: &[(&str, &str)], body: &str) -> Frame {
    let text = |it: &str| CheetahString::from_slice(it);
    Frame {
        store_size: 0,
        magic_code: 0,
        body_crc: 0,
        queue_id: 3,
        flag: 0,
        queue_offset: 7,
        commit_log_offset: 255,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        born_host: ([127, 0, 0, 1], 1).into(),
        store_timestamp: 0,
        store_host: ([127, 0, 0, 1], 10_911).into(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: Bytes::copy_from_slice(body.as_bytes()),
        topic: text("orders"),
        properties_string: text(""),
        properties: properties.iter().map(|(name, it)| (text(name), text(it))).collect(),
    }
}

fn read(frame: Frame, reconsume_times: i32, reading: Reading) -> Delivery {
    Popped { frame, reconsume_times, receipt: "receipt".into() }.delivery(LEASE, reading)
}

const NORMAL: Reading = Reading { kind: Kind::Normal, rejected: false };

/// C-2, C-3, C-6: reconsume times are the count; what is no number of deliveries is 0.
#[test]
fn c_6_reconsume_times_and_1_is_the_attempt() {
    for (wire, presented, reported) in [
        (0, 0, true),
        (1, 1, true),
        (16, 16, true),
        (i32::MAX, 2_147_483_647, true),
        (-1, 0, false),
        (i32::MIN, 0, false),
    ] {
        let counted = counted(wire);
        assert_eq!(counted.count(), Count(presented), "{wire}");
        assert_eq!(matches!(counted, Counted::AtLeast(_)), reported, "{wire}");
    }
}

/// C-6: a counter among the properties is neither read nor shown, nor is anything else of RocketMQ's.
#[test]
fn c_6_the_broker_s_own_properties_are_no_headers() {
    let properties = [
        ("UNIQ_KEY", "the-id"),
        ("__SHARDINGKEY", "group"),
        ("POP_CK", "0 1 2 3 0 b 0 0"),
        ("1ST_POP_TIME", "1700000000500"),
        ("RECONSUME_TIME", "9"),
        ("ApproximateReceiveCount", "9"),
        ("googclient_deliveryattempt", "9"),
        ("REAL_TOPIC", "other"),
        ("TAGS", "new"),
        ("KEYS", "one two"),
        ("b", "2"),
        ("a", "1"),
        ("pumphouse", "{}"),
        ("content-type", "text/plain"),
    ];
    let got = read(frame(&properties, "body"), 2, NORMAL);
    let message = &got.message;
    assert_eq!((message.id.as_str(), &*message.body), ("the-id", b"body".as_slice()));
    let headers: Vec<_> = message.headers.iter().map(|(name, it)| (name, it.as_str())).collect();
    let expected =
        [("KEYS", "one two"), ("TAGS", "new"), ("a", "1"), ("b", "2"), ("pumphouse", "{}")];
    assert_eq!(headers, expected.map(|(name, text)| (name, Some(text))));
    assert_eq!(message.content_type.as_deref(), Some("text/plain"));
    assert_eq!(message.ordering_key.as_deref(), Some("group"));
    assert_eq!(message.published_at, Some(Timestamp(1_700_000_000_000)));
    assert_eq!((got.counted.count(), got.undecodable), (Count(2), None));
    assert_eq!(got.receipt, Receipt::from("receipt".to_owned()));
}

/// S-3: the broker writes the time of the first delivery of a normal topic's message, at its first redelivery.
#[test]
fn s_3_the_first_delivery_s_time_is_told_where_it_is_the_same_on_each() {
    let fifo = Reading { kind: Kind::Fifo, rejected: false };
    let at = Some(Timestamp(1_700_000_000_500));
    for (times, reading, expected) in
        [(0, NORMAL, None), (1, NORMAL, at), (5, NORMAL, at), (1, fifo, None)]
    {
        let frame = frame(&[("1ST_POP_TIME", "1700000000500")], "body");
        assert_eq!(read(frame, times, reading).first_received_at, expected, "{times} {reading:?}");
    }
    assert_eq!(read(frame(&[("1ST_POP_TIME", "x")], ""), 1, NORMAL).first_received_at, None);
}

#[test]
fn a_message_without_an_id_has_that_of_its_place() {
    let got = read(frame(&[], "body"), 0, NORMAL);
    assert_eq!(got.message.id, "7F00000100002A9F00000000000000FF");
    assert_eq!(got.message.ordering_key, None);
    let before = Frame { born_timestamp: -1, ..frame(&[("__SHARDINGKEY", "")], "") };
    let got = read(before, 0, NORMAL);
    assert_eq!((got.message.published_at, got.message.ordering_key.as_ref()), (None, None));
}

#[test]
fn a_trace_context_of_rocketmq_s_clients_gets_its_usual_name() {
    const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = |properties: &[(&str, &str)]| {
        let got = read(frame(properties, ""), 0, NORMAL);
        let headers = got.message.headers.iter();
        headers
            .map(|(name, it)| format!("{name}={}", it.as_str().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    assert_eq!(headers(&[("TRACE_CONTEXT", CONTEXT)]), [format!("traceparent={CONTEXT}")]);
    assert_eq!(headers(&[("TRACE_CONTEXT", "x")]), ["TRACE_CONTEXT=x"]);
    let both = headers(&[("TRACE_CONTEXT", CONTEXT), ("traceparent", "mine")]);
    assert_eq!(both, [format!("TRACE_CONTEXT={CONTEXT}"), "traceparent=mine".to_owned()]);
}

/// FR-06: what can't be read is handed over as such, with its properties and the body as received.
#[test]
fn fr_06_a_body_that_can_t_be_read_is_undecodable() {
    let compressed = MessageSysFlag::COMPRESSED_FLAG | MessageSysFlag::COMPRESSION_ZLIB_TYPE;
    for sys_flag in [compressed, BATCH] {
        let frame = Frame { sys_flag, ..frame(&[("UNIQ_KEY", "the-id"), ("a", "1")], "nonsense") };
        let got = read(frame, 1, NORMAL);
        assert!(got.undecodable.is_some(), "{sys_flag}");
        assert_eq!((&*got.message.id, &*got.message.body), ("the-id", b"nonsense".as_slice()));
        assert_eq!((got.message.headers.text("a"), got.counted.count()), (Some("1"), Count(1)));
    }
}

/// C-7: what is packed in a rejected copy is unpacked where copies are known, and else an ordinary header.
#[test]
fn c_7_a_copy_is_unpacked_where_copies_are_known() {
    let properties = [
        ("rejectionReason", "DeliveryError"),
        ("pumphouse", r#"{"headers":[["WAIT","String","x"]]}"#),
        ("pumphouse-encoding", "empty"),
    ];
    for (rejected, header) in [(true, Some("x")), (false, None)] {
        let got = read(frame(&properties, " "), 0, Reading { rejected, ..NORMAL });
        assert_eq!(got.message.headers.text("WAIT"), header);
        assert_eq!(got.message.headers.get("pumphouse").is_some(), !rejected);
        assert!(got.message.body.is_empty());
    }
}
