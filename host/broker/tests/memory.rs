//! What the broker in memory does over long times, on Tokio's paused clock, and at its limits.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails so")]

mod support;

use std::time::Duration;

use pumphouse_broker::{Broker, Limits};
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{Ask, PublishError};
use support::*;
use tokio::time::Instant;

const DAY: Duration = Duration::from_secs(86_400);
const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn the_longest_lease_lapses_on_time() {
    let rig = Rig::memory().await;
    let lease = rig.source.capabilities().longest_lease;
    rig.publish(None, "a").await;
    let first = rig.one(lease).await;
    assert_eq!(first.lease.until, first.lease.received.plus(lease));
    tokio::time::advance(lease - MOMENT).await;
    rig.nothing().await;
    tokio::time::advance(MOMENT).await;
    assert_eq!(count(&rig.one(LONG).await), 1);
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_ends_on_time() {
    let rig = Rig::memory().await;
    rig.publish(None, "a").await;
    rig.release(&rig.one(LONG).await, 7 * DAY).await;
    tokio::time::advance(7 * DAY - MOMENT).await;
    rig.nothing().await;
    let began = Instant::now();
    rig.soon(LONG).await;
    assert_eq!(began.elapsed(), MOMENT);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_no_longer_than_the_longest() {
    let rig = Rig::memory().await;
    let longest = rig.source.capabilities().longest_wait;
    let began = Instant::now();
    assert!(rig.receive(1, DAY, LONG).await.is_empty());
    let took = began.elapsed();
    assert!(took >= longest && took <= longest + 2 * MOMENT, "{took:?}");
}

/// No busy polling: a waiter looks again when something is due, not before.
#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_at_the_moment_that_something_is_due() {
    let rig = Rig::memory().await;
    for (body, delay) in [("late", 9), ("early", 3), ("middle", 5)] {
        rig.publish(None, body).await;
        rig.release(&rig.one(LONG).await, Duration::from_secs(delay)).await;
    }
    let began = Instant::now();
    for (expected, at) in [("early", 3), ("middle", 5), ("late", 9)] {
        assert_eq!(body(&rig.soon(LONG).await), expected);
        assert_eq!(began.elapsed(), Duration::from_secs(at));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deduplication_id_is_forgotten_after_five_minutes() {
    let rig = Rig::memory().await;
    let copy = || Outgoing { deduplication_id: Some("d".into()), ..outgoing(None, "a") };
    let first = rig.sink.publish(copy()).await.expect("published");
    tokio::time::advance(Duration::from_secs(300) - MOMENT).await;
    assert_eq!(rig.sink.publish(copy()).await.expect("published"), first);
    tokio::time::advance(MOMENT).await;
    assert_ne!(rig.sink.publish(copy()).await.expect("published"), first);
    assert_eq!(rig.messages(), 2);
}

async fn limited(messages: usize, memory_bytes: usize) -> Rig {
    let clock = TestClock::start();
    let limits = Limits { message_bytes: 1_000, messages, memory_bytes };
    Rig::around(Broker::memory_within(clock.clone(), limits), clock, None).await
}

async fn refused(rig: &Rig) -> String {
    match rig.sink.publish(outgoing(None, "0123456789")).await {
        Err(PublishError::Refused(name, text)) if name == QUEUE => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_broker_refuses_and_takes_again_when_there_is_room() {
    for (messages, bytes, named) in [(2, 1_000, "2 messages"), (10, 20, "20 bytes")] {
        let rig = limited(messages, bytes).await;
        rig.publish(None, "0123456789").await;
        rig.publish(None, "0123456789").await;
        let text = refused(&rig).await;
        assert!(text.contains(named), "{text}");
        let deliveries = rig.receive(1, NOW, LONG).await;
        refused(&rig).await;
        rig.ack(&deliveries[0]).await;
        rig.publish(None, "0123456789").await;
        assert_eq!(rig.messages(), 2);
    }
}

#[tokio::test]
async fn the_most_that_a_receive_brings_is_a_batch() {
    let rig = Rig::memory().await;
    for n in 0..200 {
        rig.publish(None, &n.to_string()).await;
    }
    let most = rig.source.capabilities().receive_batch;
    assert_eq!(rig.receive(1_000, NOW, LONG).await.len(), most);
    let ask = Ask { max: 0, wait: NOW, lease: LONG };
    assert_eq!(rig.source.receive(ask).await.expect("received").len(), 1);
}
