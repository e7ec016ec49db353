//! What both brokers do: each case runs in memory and on the disk.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails so")]

#[macro_use]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pumphouse_contract::ports::{
    Action, Ask, Counter, Failure, PublishError, ReceiveError, Settlement,
};
use pumphouse_contract::{
    Counted, HeaderValue, Headers, Outgoing, Reason, Receipt, Stamp, Timestamp,
};
use support::*;

cases! {
    c_1_a_release_advances_the_count
    c_1_a_lapsed_lease_advances_the_count
    c_2_a_first_delivery_presents_zero
    c_3_the_nth_delivery_says_n
    c_18_a_release_without_a_call_counts_too
    s_3_the_first_delivery_is_dated
    s_6_a_released_head_holds_its_key_back_and_others_go_on
    s_6_a_delayed_head_holds_its_key_back
    s_6_a_lapsed_head_comes_before_its_followers
    s_6_a_receive_brings_one_message_of_a_key
    s_6_keys_keep_their_order_under_concurrent_receivers
    competing_receivers_get_each_message_once
    fr_34_each_settlement_of_a_batch_has_its_own_answer
    fr_35_a_receipt_is_good_for_one_settlement_within_the_lease
    fr_35_a_receipt_of_another_delivery_does_nothing
    fr_32_a_delay_beyond_the_longest_is_refused_and_named
    a_lease_beyond_the_longest_is_refused_and_named
    depth_and_age_are_told
    a_deduplication_id_makes_two_messages_one
    c_11_a_message_comes_as_it_went
    c_11_a_stamp_is_plain_headers
    a_missing_queue_is_named
    a_queue_that_is_made_later_is_found
    a_message_that_is_too_large_is_refused
    message_ids_are_unique_and_sort_by_time
    making_a_queue_twice_changes_nothing
    names_that_no_queue_can_have
    a_closed_broker_says_so
}

async fn c_1_a_release_advances_the_count(rig: Rig) {
    rig.publish(None, "a").await;
    let first = rig.one(LONG).await;
    rig.release(&first, NOW).await;
    let second = rig.one(LONG).await;
    assert!(count(&second) > count(&first));
    assert_eq!(second.message.id, first.message.id);
}

async fn c_1_a_lapsed_lease_advances_the_count(rig: Rig) {
    rig.publish(None, "a").await;
    let first = rig.one(SHORT).await;
    let second = rig.soon(LONG).await;
    assert!(count(&second) > count(&first));
    assert!(second.lease.received >= first.lease.until, "the lease was kept");
}

async fn c_2_a_first_delivery_presents_zero(rig: Rig) {
    rig.publish(Some("k"), "a").await;
    assert_eq!(count(&rig.one(LONG).await), 0);
}

async fn c_3_the_nth_delivery_says_n(rig: Rig) {
    assert_eq!(rig.source.capabilities().counter, Counter::Exact);
    rig.publish(None, "a").await;
    for n in 1..=6 {
        let lapses = n % 2 == 0;
        let delivery = rig.soon(if lapses { SHORT } else { LONG }).await;
        assert!(matches!(delivery.counted, Counted::Exact(attempt) if attempt.get() == n));
        if !lapses {
            rig.release(&delivery, Duration::from_millis(1)).await;
        }
    }
}

async fn c_18_a_release_without_a_call_counts_too(rig: Rig) {
    assert!(rig.source.capabilities().undispatched_release_counts);
    rig.publish(None, "a").await;
    rig.release(&rig.one(LONG).await, NOW).await;
    assert_eq!(count(&rig.one(LONG).await), 1);
}

async fn s_3_the_first_delivery_is_dated(rig: Rig) {
    rig.publish(None, "a").await;
    let first = rig.one(LONG).await;
    let dated = first.first_received_at.expect("a date");
    assert!(dated >= first.message.published_at.expect("a date"));
    rig.clock.step(60_000);
    rig.release(&first, NOW).await;
    assert_eq!(rig.one(LONG).await.first_received_at, Some(dated));
}

async fn s_6_a_released_head_holds_its_key_back_and_others_go_on(rig: Rig) {
    for (key, body) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3"), ("b", "b2")] {
        rig.publish(Some(key), body).await;
    }
    let first = rig.receive(10, NOW, LONG).await;
    assert_eq!(bodies(&first), ["a1", "b1"]);
    rig.release(&first[0], A_WHILE).await;
    rig.ack(&first[1]).await;
    let second = rig.one(LONG).await;
    assert_eq!(body(&second), "b2");
    rig.ack(&second).await;
    for expected in [("a1", 1), ("a2", 0), ("a3", 0)] {
        let delivery = rig.soon(LONG).await;
        assert_eq!((body(&delivery), count(&delivery)), expected);
        rig.ack(&delivery).await;
    }
}

async fn s_6_a_delayed_head_holds_its_key_back(rig: Rig) {
    rig.publish(Some("a"), "a1").await;
    rig.release(&rig.one(LONG).await, LONG).await;
    rig.publish(Some("a"), "a2").await;
    rig.publish(None, "free").await;
    let delivery = rig.one(LONG).await;
    assert_eq!(body(&delivery), "free");
    rig.nothing().await;
}

async fn s_6_a_lapsed_head_comes_before_its_followers(rig: Rig) {
    rig.publish(Some("a"), "a1").await;
    rig.publish(Some("a"), "a2").await;
    assert_eq!(body(&rig.one(A_WHILE).await), "a1");
    rig.nothing().await;
    for expected in ["a1", "a2"] {
        let delivery = rig.soon(LONG).await;
        assert_eq!(body(&delivery), expected);
        rig.ack(&delivery).await;
    }
}

async fn s_6_a_receive_brings_one_message_of_a_key(rig: Rig) {
    assert!(!rig.source.capabilities().batch_may_hold_followers);
    for n in 0..6 {
        rig.publish(Some(["a", "b"][n % 2]), &n.to_string()).await;
    }
    assert_eq!(bodies(&rig.receive(128, NOW, LONG).await), ["0", "1"]);
    rig.nothing().await;
}

async fn s_6_keys_keep_their_order_under_concurrent_receivers(rig: Rig) {
    let (keys, each) = (5_usize, 20_usize);
    for n in 0..keys * each {
        rig.publish(Some(&(n % keys).to_string()), &n.to_string()).await;
    }
    let handled = Arc::new(std::sync::Mutex::new(vec![Vec::new(); keys]));
    let rig = Arc::new(rig);
    let receivers = (0..4_usize).map(|worker| {
        let (rig, handled) = (Arc::clone(&rig), Arc::clone(&handled));
        tokio::spawn(async move {
            while rig.messages() > 0 {
                for delivery in rig.receive(3, Duration::from_millis(50), LONG).await {
                    let n: usize = body(&delivery).parse().expect("a number");
                    // Every third message is deferred once, some with a delay.
                    if n.is_multiple_of(3) && count(&delivery) == 0 {
                        let delay = Duration::from_millis((worker % 2 * 5) as u64);
                        rig.release(&delivery, delay).await;
                    } else {
                        handled.lock().expect("a lock")[n % keys].push(n);
                        rig.ack(&delivery).await;
                    }
                }
            }
        })
    });
    for receiver in receivers.collect::<Vec<_>>() {
        receiver.await.expect("a receiver ends");
    }
    for (key, order) in handled.lock().expect("a lock").iter().enumerate() {
        let expected: Vec<_> = (0..each).map(|n| n * keys + key).collect();
        assert_eq!(*order, expected, "key {key}");
    }
}

async fn competing_receivers_get_each_message_once(rig: Rig) {
    let rig = Arc::new(rig);
    let mut published = BTreeSet::new();
    for n in 0..300 {
        published.insert(rig.publish(None, &n.to_string()).await);
    }
    let receivers = (0..4).map(|_| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let mut got = Vec::new();
            loop {
                let deliveries = rig.receive(7, NOW, LONG).await;
                if deliveries.is_empty() {
                    return got;
                }
                got.extend(deliveries.iter().map(|one| one.message.id.clone()));
            }
        })
    });
    let mut received = Vec::new();
    for receiver in receivers.collect::<Vec<_>>() {
        received.extend(receiver.await.expect("a receiver ends"));
    }
    assert_eq!(received.len(), 300);
    assert_eq!(received.into_iter().collect::<BTreeSet<_>>(), published);
}

async fn fr_34_each_settlement_of_a_batch_has_its_own_answer(rig: Rig) {
    for n in 0..3 {
        rig.publish(None, &n.to_string()).await;
    }
    let deliveries = rig.receive(3, NOW, LONG).await;
    rig.ack(&deliveries[1]).await;
    let batch = vec![
        Settlement { receipt: deliveries[0].receipt.clone(), action: Action::Ack },
        Settlement { receipt: deliveries[1].receipt.clone(), action: Action::Ack },
        Settlement { receipt: Receipt::from("rubbish".to_owned()), action: Action::Ack },
        Settlement { receipt: deliveries[2].receipt.clone(), action: Action::Release(NOW) },
    ];
    let answers = rig.source.settle(batch.clone()).await;
    let failures: Vec<_> =
        answers.iter().map(|one| one.as_ref().err().map(|u| u.failure)).collect();
    assert_eq!(failures, [None, Some(Failure::Gone), Some(Failure::Gone), None]);
    let returned = answers[1].as_ref().expect_err("it is gone");
    assert_eq!(returned.settlement, batch[1]);
    assert_eq!(body(&rig.one(LONG).await), "2");
    assert_eq!(rig.messages(), 1);
}

async fn fr_35_a_receipt_is_good_for_one_settlement_within_the_lease(rig: Rig) {
    rig.publish(None, "a").await;
    let lapsed = rig.one(SHORT).await;
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(rig.settle(&lapsed, Action::Ack).await, Err(Failure::Gone), "lapsed");
    let again = rig.one(LONG).await;
    for action in [Action::Ack, Action::Release(NOW)] {
        assert_eq!(rig.settle(&lapsed, action).await, Err(Failure::Gone), "redelivered");
    }
    rig.nothing().await;
    rig.release(&again, NOW).await;
    assert_eq!(rig.settle(&again, Action::Ack).await, Err(Failure::Gone), "released");
    let last = rig.one(LONG).await;
    rig.ack(&last).await;
    assert_eq!(rig.settle(&last, Action::Ack).await, Err(Failure::Gone), "acknowledged");
    assert_eq!(rig.messages(), 0);
}

async fn fr_35_a_receipt_of_another_delivery_does_nothing(rig: Rig) {
    rig.broker.create("other").await.expect("a queue");
    let other = rig.broker.source("other").expect("a source");
    rig.publish(None, "a").await;
    let delivery = rig.one(LONG).await;
    assert_eq!(settle(other.as_ref(), &delivery, Action::Ack).await, Err(Failure::Gone));
    let missing = rig.broker.source("missing").expect("a source");
    assert_eq!(settle(missing.as_ref(), &delivery, Action::Ack).await, Err(Failure::Gone));
    let elsewhere = Rig::memory().await;
    elsewhere.publish(None, "b").await;
    let foreign = elsewhere.one(LONG).await;
    assert_eq!(rig.settle(&foreign, Action::Ack).await, Err(Failure::Gone));
    assert_eq!(rig.messages(), 1);
    rig.ack(&delivery).await;
}

async fn fr_32_a_delay_beyond_the_longest_is_refused_and_named(rig: Rig) {
    let longest = rig.source.capabilities().longest_delay;
    rig.publish(None, "a").await;
    let delivery = rig.one(LONG).await;
    let beyond = Action::Release(longest + Duration::from_millis(1));
    assert_eq!(rig.settle(&delivery, beyond).await, Err(Failure::Refused));
    rig.release(&delivery, longest).await;
    rig.nothing().await;
}

async fn a_lease_beyond_the_longest_is_refused_and_named(rig: Rig) {
    let longest = rig.source.capabilities().longest_lease;
    rig.publish(None, "a").await;
    let ask = Ask { max: 1, wait: NOW, lease: longest + Duration::from_secs(1) };
    let refused = rig.source.receive(ask).await;
    assert!(matches!(refused, Err(ReceiveError::Other(_, text)) if text.contains("12 hours")));
    assert_eq!(count(&rig.one(longest).await), 0);
}

async fn depth_and_age_are_told(rig: Rig) {
    assert_eq!(rig.broker.depth("missing"), None);
    let empty = rig.sink.depth().await.expect("a depth");
    assert_eq!((empty.messages, empty.oldest_age), (Some(0), None));
    for body in ["a", "b", "c"] {
        rig.publish(None, body).await;
        rig.clock.step(10_000);
    }
    let deliveries = rig.receive(2, NOW, LONG).await;
    rig.release(&deliveries[1], LONG).await;
    let full = rig.sink.depth().await.expect("a depth");
    assert_eq!(full.messages, Some(3), "in progress, delayed and waiting");
    let age = full.oldest_age.expect("an age");
    assert!(age >= Duration::from_secs(30) && age < Duration::from_secs(40), "{age:?}");
    rig.ack(&deliveries[0]).await;
    let age = rig.sink.depth().await.expect("a depth").oldest_age.expect("an age");
    assert!(age >= Duration::from_secs(20) && age < Duration::from_secs(30), "{age:?}");
    rig.clock.step(-3_600_000);
    let age = rig.sink.depth().await.expect("a depth").oldest_age;
    assert_eq!(age, Some(Duration::ZERO), "a clock that stepped back");
}

async fn a_deduplication_id_makes_two_messages_one(rig: Rig) {
    let copy =
        |id: &str| Outgoing { deduplication_id: Some(id.to_owned()), ..outgoing(None, "a copy") };
    let first = rig.sink.publish(copy("orders/m-1/None")).await.expect("published");
    let again = rig.sink.publish(copy("orders/m-1/None")).await.expect("published");
    let other = rig.sink.publish(copy("orders/m-2/None")).await.expect("published");
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_eq!(rig.messages(), 2);
    let settled = rig.receive(2, NOW, LONG).await;
    rig.ack(&settled[0]).await;
    let late = rig.sink.publish(copy("orders/m-1/None")).await.expect("published");
    assert_eq!(late, first, "also when the first is handled already");
    rig.broker.create("elsewhere").await.expect("a queue");
    let elsewhere = rig.broker.sink("elsewhere").expect("a sink");
    let own = elsewhere.publish(copy("orders/m-1/None")).await.expect("published");
    assert_ne!(own, first, "each queue has its own");
}

async fn c_11_a_message_comes_as_it_went(rig: Rig) {
    let headers: Headers = [
        ("type", HeaderValue::from("order")),
        ("n", HeaderValue::Number("1.50".into())),
        ("raw", HeaderValue::Binary(Bytes::from_static(b"\x00\xff"))),
        ("twice", HeaderValue::from("1")),
        ("twice", HeaderValue::from("2")),
        ("", HeaderValue::from("ü")),
    ]
    .into_iter()
    .collect();
    let sent = Outgoing {
        headers: headers.clone(),
        content_type: Some("application/json".into()),
        ordering_key: Some("key ü".into()),
        body: Bytes::from_static(b"\x00\xfe\xff body"),
        ..Outgoing::default()
    };
    let id = rig.sink.publish(sent.clone()).await.expect("published");
    let delivery = rig.one(LONG).await;
    assert_eq!(delivery.undecodable, None);
    let message = &delivery.message;
    assert_eq!(message.id, id);
    assert_eq!(message.headers, headers);
    assert_eq!(message.content_type, sent.content_type);
    assert_eq!(message.ordering_key, sent.ordering_key);
    assert_eq!(message.body, sent.body);
    assert!(message.published_at.is_some());
}

async fn c_11_a_stamp_is_plain_headers(rig: Rig) {
    let stamp = Stamp {
        original_topic: "orders".into(),
        original_message_type: "order".into(),
        reason: Reason::DeliveryError,
        message: "budget: 3 of 3".into(),
        timestamp: Timestamp(0),
        original_message_id: "m-1".into(),
        rejected_by: "orders/acme/orders@abc".into(),
        deliveries: 3,
    };
    let headers: Headers = [("own", "x")].into_iter().collect();
    let copy = Outgoing { headers, stamp: Some(stamp.clone()), ..outgoing(None, "copy") };
    rig.sink.publish(copy).await.expect("published");
    let delivery = rig.one(LONG).await;
    assert_eq!(delivery.message.headers.text("own"), Some("x"));
    for (name, value) in stamp.pairs() {
        assert_eq!(delivery.message.headers.text(name), Some(value.as_str()), "{name}");
    }
    assert_eq!(delivery.message.headers.len(), 9);
}

async fn a_missing_queue_is_named(rig: Rig) {
    let source = rig.broker.source("missing").expect("a source");
    let error = source.receive(Ask { max: 1, wait: NOW, lease: LONG }).await;
    assert!(matches!(error, Err(ReceiveError::Missing(name, _)) if name == "missing"));
    let sink = rig.broker.sink("missing").expect("a sink");
    let error = sink.publish(outgoing(None, "a")).await;
    assert!(matches!(error, Err(PublishError::Missing(name, _)) if name == "missing"));
    assert!(matches!(sink.depth().await, Err(PublishError::Missing(..))));
    assert!(!rig.broker.exists("missing"), "C-13: publishing makes nothing");
}

async fn a_queue_that_is_made_later_is_found(rig: Rig) {
    let source = rig.broker.source("later").expect("a source");
    let sink = rig.broker.sink("later").expect("a sink");
    assert!(sink.publish(outgoing(None, "a")).await.is_err());
    rig.broker.create("later").await.expect("a queue");
    sink.publish(outgoing(None, "a")).await.expect("published");
    let received = source.receive(Ask { max: 1, wait: NOW, lease: LONG }).await;
    assert_eq!(received.expect("received").len(), 1);
}

async fn a_message_that_is_too_large_is_refused(rig: Rig) {
    let most = pumphouse_broker::Limits::MEMORY.message_bytes;
    let of = |bytes: usize| Outgoing { body: vec![0; bytes].into(), ..Outgoing::default() };
    let refused = rig.sink.publish(of(most + 1)).await;
    assert!(
        matches!(&refused, Err(PublishError::Refused(_, text)) if text.contains("4194305")),
        "{refused:?}"
    );
    rig.sink.publish(of(most)).await.expect("the largest is taken");
    assert_eq!(rig.one(LONG).await.message.body.len(), most);
}

async fn message_ids_are_unique_and_sort_by_time(rig: Rig) {
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(rig.publish(None, "a").await);
    }
    assert!(ids.is_sorted());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 100);
    assert!(ids.iter().all(|id| id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit())));
}

async fn making_a_queue_twice_changes_nothing(rig: Rig) {
    rig.publish(None, "a").await;
    rig.broker.create(QUEUE).await.expect("a queue");
    assert_eq!(rig.messages(), 1);
    let (one, two) = tokio::join!(rig.broker.create("x"), rig.broker.create("x"));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(rig.broker.queues(), ["orders", "x"]);
}

async fn names_that_no_queue_can_have(rig: Rig) {
    for name in ["", "a\nb", &"x".repeat(256)] {
        let error = rig.broker.create(name).await.expect_err("refused");
        assert!(error.to_string().contains("is refused"), "{error}");
        assert!(rig.broker.source(name).is_err() && rig.broker.sink(name).is_err());
    }
}

async fn a_closed_broker_says_so(rig: Rig) {
    rig.publish(None, "a").await;
    let held = rig.one(LONG).await;
    let waiting = rig.source.receive(Ask { max: 1, wait: PATIENT, lease: LONG });
    let closing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        rig.broker.close().await;
    };
    let began = Instant::now();
    let (waited, ()) = tokio::join!(waiting, closing);
    assert!(matches!(waited, Err(ReceiveError::Unavailable(_, text)) if text.contains("closed")));
    assert!(began.elapsed() < PATIENT / 2, "the waiter is told at once");
    assert_eq!(rig.settle(&held, Action::Ack).await, Err(Failure::Refused));
    let published = rig.sink.publish(outgoing(None, "b")).await;
    assert!(matches!(published, Err(PublishError::Unavailable(..))));
    assert!(rig.broker.source(QUEUE).is_err());
    assert!(rig.broker.create("new").await.is_err());
    rig.broker.close().await;
}
