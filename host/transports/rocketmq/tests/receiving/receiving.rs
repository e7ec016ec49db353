use std::time::{Duration, Instant};

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::ReceiveError;
use pumphouse_rocketmq::Kind;

use crate::common::{LONG, Room, ask, body, one, open, send};

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

/// A wait ends with the first message, and without one after its time; a look does not wait.
#[tokio::test]
async fn a_wait_is_as_long_as_asked() {
    let room = Room::open(Kind::Normal).await;
    for (wait, least, most) in [(0, 0, 1_000), (2_000, 1_900, 4_000)] {
        let begun = Instant::now();
        let got = room.source.receive(ask(1, Duration::from_millis(wait), LONG)).await;
        let took = begun.elapsed().as_millis();
        assert!(got.expect("a receive").is_empty() && (least..most).contains(&took), "{took}");
    }
    let waits = async { (room.source.receive(ask(1, 5 * SECOND, LONG)).await, Instant::now()) };
    let sends = async {
        tokio::time::sleep(SECOND).await;
        room.send("body").await;
        Instant::now()
    };
    let ((got, came), sent) = tokio::join!(waits, sends);
    assert_eq!(got.expect("a receive").len(), 1);
    assert!(came.saturating_duration_since(sent) < SECOND);
}

const SECOND: Duration = Duration::from_secs(1);

/// A drain does not wait for messages.
#[tokio::test]
async fn nobody_waits_after_an_interruption() {
    let room = Room::open(Kind::Normal).await;
    room.source.interrupt();
    let begun = Instant::now();
    let got = room.source.receive(ask(1, 5 * SECOND, LONG)).await.expect("a receive");
    assert!(got.is_empty() && begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    room.send("body").await;
    assert_eq!(body(&one(room.source.as_ref(), LONG).await), "body");
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
