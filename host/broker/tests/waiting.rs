//! Waiting for a message, and what ends it: each case runs in memory and on the disk.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails so")]

#[macro_use]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pumphouse_contract::ports::Ask;
use support::*;

cases! {
    a_delay_is_honoured
    a_wait_ends_with_nothing
    a_publish_wakes_a_waiter
    a_release_wakes_a_waiter
    an_ack_wakes_a_waiter_for_the_next_of_the_key
    a_delay_that_began_while_waiting_wakes_the_waiter_when_it_ends
    several_waiters_share_what_comes
}

async fn a_delay_is_honoured(rig: Rig) {
    rig.publish(None, "a").await;
    let released = Instant::now();
    rig.release(&rig.one(LONG).await, A_WHILE).await;
    rig.nothing().await;
    rig.soon(LONG).await;
    let took = released.elapsed();
    assert!(took >= A_WHILE && took < PATIENT / 2, "{took:?}");
}

async fn a_wait_ends_with_nothing(rig: Rig) {
    let began = Instant::now();
    assert!(rig.receive(10, SHORT, LONG).await.is_empty());
    let took = began.elapsed();
    assert!(took >= SHORT && took < PATIENT / 2, "{took:?}");
}

/// Waits for a message while `meanwhile` makes one come, and says how long it took.
async fn woken_by(rig: &Rig, meanwhile: impl Future<Output = ()>) -> Duration {
    let waiting = async {
        let delivery = rig.soon(LONG).await;
        (delivery, Instant::now())
    };
    let ringing = async {
        // The waiter is given the time to fall asleep; where it has not, the case proves less, not wrong.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let rung = Instant::now();
        meanwhile.await;
        rung
    };
    let ((_, woken), rung) = tokio::join!(waiting, ringing);
    woken.saturating_duration_since(rung)
}

async fn a_publish_wakes_a_waiter(rig: Rig) {
    let took = woken_by(&rig, async {
        rig.publish(None, "a").await;
    })
    .await;
    assert!(took < PATIENT / 2, "{took:?}");
}

async fn a_release_wakes_a_waiter(rig: Rig) {
    rig.publish(None, "a").await;
    let held = rig.one(LONG).await;
    let took = woken_by(&rig, rig.release(&held, NOW)).await;
    assert!(took < PATIENT / 2, "{took:?}");
}

async fn an_ack_wakes_a_waiter_for_the_next_of_the_key(rig: Rig) {
    rig.publish(Some("k"), "a").await;
    rig.publish(Some("k"), "b").await;
    let held = rig.one(LONG).await;
    let took = woken_by(&rig, rig.ack(&held)).await;
    assert!(took < PATIENT / 2, "{took:?}");
}

/// The waiter fell asleep when nothing was due; another waiter that leaves earlier must not take the news with it.
async fn a_delay_that_began_while_waiting_wakes_the_waiter_when_it_ends(rig: Rig) {
    rig.publish(Some("k"), "a").await;
    rig.publish(Some("k"), "b").await;
    let held = rig.one(LONG).await;
    let took = woken_by(&rig, async {
        rig.release(&held, SHORT).await;
        let other = rig.source.receive(Ask { max: 1, wait: SHORT / 3, lease: LONG }).await;
        assert!(other.expect("received").is_empty());
    })
    .await;
    assert!(took >= SHORT && took < PATIENT / 2, "{took:?}");
}

async fn several_waiters_share_what_comes(rig: Rig) {
    let rig = Arc::new(rig);
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move { rig.receive(1, PATIENT, LONG).await.len() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    for n in 0..4 {
        rig.publish(None, &n.to_string()).await;
    }
    for waiter in waiters {
        assert_eq!(waiter.await.expect("a waiter ends"), 1);
    }
    assert!(began.elapsed() < PATIENT / 2);
}
