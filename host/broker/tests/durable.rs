//! What the durable broker keeps, and what it refuses.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails so")]

mod support;

use std::path::Path;
use std::time::Duration;

use pumphouse_broker::{Broker, BrokerError, Limits};
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{Action, Ask, Failure, PublishError};
use support::*;

const FILE: &str = "broker.sqlite";

fn long_millis() -> i64 {
    i64::try_from(LONG.as_millis()).expect("a short time")
}

#[tokio::test]
async fn reopening_keeps_counts_leases_delays_and_order() {
    let rig = Rig::durable().await;
    for (key, body) in
        [(None, "leased"), (None, "delayed"), (None, "acked"), (Some("k"), "k1"), (Some("k"), "k2")]
    {
        rig.publish(key, body).await;
    }
    let held = rig.receive(10, NOW, LONG).await;
    assert_eq!(bodies(&held), ["leased", "delayed", "acked", "k1"]);
    rig.release(&held[1], LONG / 2).await;
    rig.ack(&held[2]).await;
    rig.release(&held[3], NOW).await;
    rig.publish(Some("k"), "k3").await;
    rig.publish(None, "new").await;

    let rig = rig.reopen().await;
    assert_eq!(rig.messages(), 6);
    let ready = rig.receive(10, NOW, LONG).await;
    assert_eq!(bodies(&ready), ["new", "k1"]);
    assert_eq!((count(&ready[0]), count(&ready[1])), (0, 1));
    assert_eq!(ready[1].message.id, held[3].message.id);
    assert_eq!(ready[1].first_received_at, held[3].first_received_at);
    ready_in_order(&rig, ready).await;

    rig.clock.step(long_millis());
    let rig = rig.reopen().await;
    let rest = rig.receive(10, SHORT, LONG).await;
    let mut seen: Vec<_> = rest.iter().map(|one| (body(one), count(one))).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("delayed", 1), ("leased", 1)]);
}

/// Handles what is ready, and sees the key's messages in their order.
async fn ready_in_order(rig: &Rig, ready: Vec<pumphouse_contract::Delivery>) {
    for delivery in &ready {
        rig.ack(delivery).await;
    }
    for expected in ["k2", "k3"] {
        let delivery = rig.one(LONG).await;
        assert_eq!(body(&delivery), expected);
        rig.ack(&delivery).await;
    }
}

/// The lease's own length bounds it, whatever the date says.
#[tokio::test]
async fn a_clock_that_steps_back_while_closed_does_not_stretch_a_lease() {
    let rig = Rig::durable().await;
    rig.publish(None, "a").await;
    rig.one(SHORT * 3).await;
    rig.clock.step(-86_400_000);
    let rig = rig.reopen().await;
    let again = rig.soon(LONG).await;
    assert_eq!(count(&again), 1);
}

#[tokio::test]
async fn a_receipt_of_an_earlier_opening_does_nothing() {
    let rig = Rig::durable().await;
    rig.publish(None, "a").await;
    let held = rig.one(LONG).await;
    let rig = rig.reopen().await;
    assert_eq!(rig.settle(&held, Action::Ack).await, Err(Failure::Gone));
    assert_eq!(rig.messages(), 1);
}

#[tokio::test]
async fn a_deduplication_id_is_remembered_over_a_restart() {
    let rig = Rig::durable().await;
    let copy = || Outgoing { deduplication_id: Some("d".into()), ..outgoing(None, "a") };
    let first = rig.sink.publish(copy()).await.expect("published");
    let rig = rig.reopen().await;
    assert_eq!(rig.sink.publish(copy()).await.expect("published"), first);
    assert_eq!(rig.messages(), 1);
}

/// Two of one id in one group commit.
#[tokio::test]
async fn concurrent_copies_of_one_id_are_one() {
    let rig = Rig::durable().await;
    let copy = || Outgoing { deduplication_id: Some("d".into()), ..outgoing(None, "a") };
    let (one, two, three) =
        tokio::join!(rig.sink.publish(copy()), rig.sink.publish(copy()), rig.sink.publish(copy()));
    let one = one.expect("published");
    assert_eq!(two.expect("published"), one);
    assert_eq!(three.expect("published"), one);
    assert_eq!(rig.messages(), 1);
}

#[tokio::test]
async fn bodies_that_memory_has_no_room_for_are_read_from_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = TestClock::start();
    let limits = Limits { memory_bytes: 3, ..Limits::DURABLE };
    let broker = Broker::open_within(directory.path(), clock.clone(), limits).await;
    let rig = Rig::around(broker.expect("it opens"), clock, Some(directory)).await;
    for body in ["in memory? no", "yes", "no again"] {
        let sent =
            Outgoing { content_type: Some("text/plain".into()), ..outgoing(Some("k"), body) };
        rig.sink.publish(sent).await.expect("published");
    }
    for expected in ["in memory? no", "yes", "no again"] {
        let delivery = rig.one(LONG).await;
        assert_eq!(body(&delivery), expected);
        assert_eq!(delivery.message.content_type.as_deref(), Some("text/plain"));
        assert_eq!(delivery.message.ordering_key.as_deref(), Some("k"));
        assert!(delivery.message.published_at.is_some());
        rig.ack(&delivery).await;
    }
}

#[tokio::test]
async fn too_many_messages_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = TestClock::start();
    let limits = Limits { messages: 2, ..Limits::DURABLE };
    let broker = Broker::open_within(directory.path(), clock.clone(), limits).await;
    let rig = Rig::around(broker.expect("it opens"), clock, Some(directory)).await;
    rig.publish(None, "a").await;
    rig.publish(None, "b").await;
    let refused = rig.sink.publish(outgoing(None, "c")).await;
    assert!(matches!(refused, Err(PublishError::Refused(_, text)) if text.contains("2 messages")));
    let rig = rig.reopen().await;
    assert_eq!(rig.messages(), 2);
}

/// Polls a future once and drops it.
async fn dropped<F: Future>(future: F) {
    tokio::select! {
        biased;
        _ = future => {}
        () = std::future::ready(()) => {}
    }
}

/// A caller that goes away changes nothing about what is on the books.
#[tokio::test]
async fn a_dropped_call_loses_nothing() {
    let rig = Rig::durable().await;
    for n in 0..20 {
        dropped(rig.sink.publish(outgoing(None, &n.to_string()))).await;
    }
    rig.publish(None, "last").await;
    let published = rig.messages();
    dropped(rig.source.receive(Ask { max: 50, wait: NOW, lease: SHORT })).await;
    let mut seen = 0;
    while seen < published {
        let got = rig.receive(50, PATIENT, LONG).await;
        assert!(!got.is_empty(), "{seen} of {published} came back");
        assert!(got.iter().all(|one| count(one) <= 1));
        seen += got.len() as u64;
        for delivery in &got {
            let ack = pumphouse_contract::ports::Settlement {
                receipt: delivery.receipt.clone(),
                action: Action::Ack,
            };
            dropped(rig.source.settle(vec![ack])).await;
        }
    }
    // One more operation that is waited for: those before it are done when it is.
    rig.publish(None, "end").await;
    assert_eq!(rig.messages(), 1);
    let rig = rig.reopen().await;
    assert_eq!(body(&rig.one(LONG).await), "end");
}

async fn open_again(directory: &Path) -> BrokerError {
    Broker::open(directory, TestClock::start()).await.expect_err("it is refused")
}

#[tokio::test]
async fn a_second_host_is_refused_and_told_who_has_the_directory() {
    let rig = Rig::durable().await;
    let directory = rig.directory.as_ref().expect("a directory").path();
    let error = open_again(directory).await;
    let text = error.to_string();
    assert!(text.contains(&directory.display().to_string()), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    rig.reopen().await;
}

#[tokio::test]
async fn a_dropped_broker_gives_the_directory_up() {
    let Rig { broker, source, sink, clock, directory } = Rig::durable().await;
    drop((broker, source, sink));
    let directory = directory.expect("a directory");
    for _ in 0..100 {
        match Broker::open(directory.path(), clock.clone()).await {
            Ok(broker) => return assert!(broker.exists(QUEUE)),
            Err(BrokerError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the directory is still taken");
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let rig = Rig::durable().await;
    rig.broker.close().await;
    let directory = rig.directory.expect("a directory");
    let path = directory.path().join(FILE);
    let raise = |version: i64| {
        let connection = rusqlite::Connection::open(&path).expect("it opens");
        connection.pragma_update(None, "user_version", version).expect("raised");
    };
    raise(99);
    let error = open_again(directory.path()).await;
    assert!(matches!(error, BrokerError::Newer { found: 99, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("newer"), "{error}");
    raise(1);
    let broker = Broker::open(directory.path(), rig.clock).await.expect("nothing was harmed");
    assert!(broker.exists(QUEUE));
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(FILE);
    std::fs::write(&path, vec![b'x'; 10_000]).expect("written");
    let error = open_again(directory.path()).await;
    assert!(error.to_string().contains(FILE), "{error}");
    assert_eq!(std::fs::read(&path).expect("read").len(), 10_000, "it is left alone");
}

#[tokio::test]
async fn a_directory_that_can_not_be_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let error = open_again(&file.join("state")).await;
    assert!(
        matches!(&error, BrokerError::Directory { directory, .. } if directory.ends_with("state"))
    );
    let nested = directory.path().join("a/b/c");
    let broker = Broker::open(&nested, TestClock::start()).await.expect("it is made");
    broker.close().await;
}

/// FR-06: it is handed over as what it is, not lost and not fatal.
#[tokio::test]
async fn fr_06_damaged_headers_make_a_message_undecodable() {
    let rig = Rig::durable().await;
    rig.publish(None, "the body").await;
    rig.broker.close().await;
    let directory = rig.directory.expect("a directory");
    let connection = rusqlite::Connection::open(directory.path().join(FILE)).expect("it opens");
    connection.execute("UPDATE message SET headers = x'ff0102'", []).expect("damaged");
    drop(connection);
    let broker = Broker::open(directory.path(), rig.clock.clone()).await.expect("it opens");
    let rig = Rig::around(broker, rig.clock, Some(directory)).await;
    let delivery = rig.one(LONG).await;
    assert!(delivery.undecodable.as_ref().is_some_and(|why| why.contains("headers")));
    assert_eq!(body(&delivery), "the body");
    rig.ack(&delivery).await;
}

#[tokio::test]
async fn queues_share_a_store_and_nothing_else() {
    let rig = Rig::durable().await;
    rig.broker.create("dead").await.expect("a queue");
    rig.publish(Some("k"), "a").await;
    let dead = rig.broker.sink("dead").expect("a sink");
    dead.publish(outgoing(Some("k"), "d")).await.expect("published");
    let rig = rig.reopen().await;
    assert_eq!(rig.broker.queues(), ["dead", QUEUE]);
    let dead = rig.broker.source("dead").expect("a source");
    let got = dead.receive(Ask { max: 9, wait: NOW, lease: LONG }).await.expect("received");
    assert_eq!(bodies(&got), ["d"], "one queue's key does not hold back another's");
    assert_eq!(body(&rig.one(LONG).await), "a");
}
