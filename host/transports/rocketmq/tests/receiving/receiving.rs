use std::time::{Duration, Instant};

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{Action, ReceiveError};
use pumphouse_rocketmq::Kind;

use crate::common::{LONG, Room, ask, body, one, open, send, settle};

/// A message is what its sender sent: properties are headers, RocketMQ's own are not.
#[tokio::test]
async fn a_message_is_what_was_sent() {
    let room = Room::open(Kind::Normal).await;
    let properties = "UNIQ_KEY\u{1}the-id\u{2}KEYS\u{1}k1 k2\u{2}TAGS\u{1}new\u{2}color\u{1}red\u{2}\
        content-type\u{1}text/plain\u{2}__SHARDINGKEY\u{1}group\u{2}WAIT\u{1}true\u{2}";
    send(&room.brokers[0], &room.name, 1, properties, "bødy".as_bytes(), 0).await;
    let got = room.one().await;
    let message = &got.message;
    assert_eq!((message.id.as_str(), body(&got)), ("the-id", "bødy"));
    let headers: Vec<_> = message.headers.iter().map(|(name, it)| (name, it.as_str())).collect();
    assert_eq!(headers, [("KEYS", Some("k1 k2")), ("TAGS", Some("new")), ("color", Some("red"))]);
    assert_eq!(message.content_type.as_deref(), Some("text/plain"));
    assert_eq!(message.ordering_key.as_deref(), Some("group"));
    assert!(message.published_at > Some(Timestamp(1_700_000_000_000)));
    assert_eq!(got.undecodable, None);
    room.ack(&got).await;
}

/// Never more than was asked for, and as many as there are.
#[tokio::test]
async fn a_receive_gives_what_was_asked_for() {
    let room = Room::open(Kind::Normal).await;
    for number in 0..40 {
        room.send(&number.to_string()).await;
    }
    let mut all = 0;
    let until = Instant::now() + Duration::from_secs(20);
    while all < 40 && Instant::now() < until {
        let got = room.source.receive(ask(7, Duration::from_secs(1), LONG)).await;
        let got = got.expect("a receive");
        assert!(got.len() <= 7, "{}", got.len());
        all += got.len();
    }
    assert_eq!(all, 40);
    assert!(room.is_empty_for(Duration::from_secs(1)).await);
}

/// A wait ends with the first message, and without one not before its time.
#[tokio::test]
async fn a_wait_is_as_long_as_asked() {
    let room = Room::open(Kind::Normal).await;
    // The route is asked once.
    assert!(room.is_empty_for(Duration::from_millis(1)).await);
    for (wait, least) in [(0, 0), (2_000, 1_900)] {
        let begun = Instant::now();
        let got = room.source.receive(ask(1, Duration::from_millis(wait), LONG)).await;
        let took = begun.elapsed().as_millis();
        assert_eq!(got.expect("a receive").len(), 0);
        assert!(took >= least, "{took}");
    }
    let sends = async {
        tokio::time::sleep(SECOND / 5).await;
        room.send("body").await;
    };
    let (got, ()) = tokio::join!(room.one(), sends);
    room.ack(&got).await;
}

const SECOND: Duration = Duration::from_secs(1);

/// A drain does not wait for messages.
#[tokio::test]
async fn nobody_waits_after_an_interruption() {
    let room = Room::open(Kind::Normal).await;
    room.source.interrupt();
    let begun = Instant::now();
    let got = room.source.receive(ask(1, 30 * SECOND, LONG)).await.expect("a receive");
    assert!(got.is_empty() && begun.elapsed() < 3 * SECOND, "{:?}", begun.elapsed());
    room.send("body").await;
    assert_eq!(body(&one(room.source.as_ref(), LONG).await), "body");
}

/// What a foreign client compressed is read as it was.
#[tokio::test]
async fn a_compressed_body_is_what_it_was() {
    let room = Room::open(Kind::Normal).await;
    let text = "a body of some length, ".repeat(500);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).expect("in memory");
    let compressed = encoder.finish().expect("in memory");
    for (sys_flag, readable) in [(0x301, true), (0x101, false)] {
        send(&room.brokers[0], &room.name, 0, "a\u{1}b\u{2}", &compressed, sys_flag).await;
        let got = room.one().await;
        assert_eq!(got.undecodable.is_none(), readable, "{sys_flag:x}");
        let expected = if readable { text.as_bytes() } else { &compressed };
        assert_eq!(got.message.body, expected, "{sys_flag:x}");
        room.ack(&got).await;
    }
    assert!(room.is_empty_for(SECOND).await);
}

/// A sender that copied a message with all of its properties sent a receipt along. It settles nothing.
#[tokio::test]
async fn a_sender_s_receipt_is_not_ours() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let room = Room::open(kind).await;
        let properties = "POP_CK\u{1}7 1700000000000 1000 3 1 broker-9 5 9\u{2}";
        send(&room.brokers[0], &room.name, 0, properties, b"body", 0).await;
        let first = room.one().await;
        room.release(&first, Duration::ZERO).await;
        let again = room.one().await;
        assert_eq!(again.counted.count().0, 1, "{kind:?}");
        room.ack(&again).await;
        assert!(room.is_empty_for(3 * SECOND).await, "{kind:?}");
    }
}

/// Tags choose, of redeliveries as well.
#[tokio::test]
async fn tags_choose() {
    let room = Room::open(Kind::Normal).await;
    let spec = pumphouse_rocketmq::SourceSpec {
        tags: Some("a || b".into()),
        ..crate::common::spec(&room.name, Kind::Normal)
    };
    let source = room.rocketmq.source(spec).await.expect("a source");
    for tag in ["a", "c", "b"] {
        let properties = format!("TAGS\u{1}{tag}\u{2}");
        send(&room.brokers[0], &room.name, 0, &properties, tag.as_bytes(), 0).await;
    }
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let got = one(source.as_ref(), LONG).await;
        let again = got.counted.count().0 > 0;
        let action = if again { Action::Ack } else { Action::Release(Duration::ZERO) };
        settle(source.as_ref(), &got, action).await.expect("settled");
        seen.push(body(&got).to_owned());
    }
    seen.sort();
    assert_eq!(seen, ["a", "a", "b", "b"]);
    assert!(source.receive(ask(1, SECOND, LONG)).await.expect("a receive").is_empty());
}

/// FR-33: what is not there is said.
#[tokio::test]
async fn what_is_missing_is_said() {
    let room = Room::open(Kind::Normal).await;
    let topic = open(&room.rocketmq, "no-such-topic", Kind::Normal).await;
    let error = topic.receive(ask(1, SECOND, LONG)).await.expect_err("no topic");
    assert!(matches!(error, ReceiveError::Missing(..)), "{error}");
    assert!(error.to_string().contains("no-such-topic"), "{error}");
    let spec = pumphouse_rocketmq::SourceSpec {
        group: "no-such-group".into(),
        ..crate::common::spec(&room.name, Kind::Normal)
    };
    let group = room.rocketmq.source(spec).await.expect("a source");
    let error = group.receive(ask(1, SECOND, LONG)).await.expect_err("no group");
    assert!(matches!(error, ReceiveError::Missing(..)), "{error}");
    assert!(error.to_string().contains("no-such-group"), "{error}");
}
