//! Receiving and settling, against both servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{
    LEASE, ack, ask, connect, count, is_empty, one, outgoing, release, send, settle, sink, source,
    unique,
};
use pumphouse_contract::ports::{Action, Ordering, Settlement};
use pumphouse_contract::{Count, Counted, HeaderValue, Headers, Outgoing};
use serde_json::json;

against_both!(
    every_kind_of_header_and_body_comes_back,
    plain_messages_of_other_programs_are_read,
    c_1_the_count_goes_up_with_releases_and_lapses,
    c_6_a_counter_among_the_attributes_is_not_read,
    a_delayed_release_comes_back_after_the_delay_and_not_before,
    a_stale_receipt_harms_nothing,
    fr_34_a_batch_answers_for_each_in_order,
    an_empty_queue_is_waited_for_no_longer_than_asked,
    s_6_a_fifo_group_is_kept_in_order,
);

async fn every_kind_of_header_and_body_comes_back(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("kinds"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    let headers: Headers = [
        ("binary", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
        ("number", HeaderValue::Number("-12.5".into())),
        ("text", HeaderValue::from("ä\t\n\"")),
    ]
    .into_iter()
    .collect();
    for body in [&b"text \xc3\xa4\n"[..], b"\0\x01\xff", b"\x0b", b""] {
        let message = Outgoing {
            headers: headers.clone(),
            content_type: Some("application/json".into()),
            body: Bytes::from_static(body),
            ..Outgoing::default()
        };
        let id = sink.publish(message).await.expect("published");
        let got = one(source.as_ref(), LEASE).await;
        assert_eq!(got.undecodable, None);
        assert_eq!(got.message.id, id);
        assert_eq!(got.message.body, body);
        assert_eq!(got.message.headers, headers);
        assert_eq!(got.message.content_type.as_deref(), Some("application/json"));
        assert!(got.message.published_at.is_some() && got.first_received_at.is_some());
        ack(source.as_ref(), &got).await;
    }
    assert!(is_empty(source.as_ref()).await);
}

async fn plain_messages_of_other_programs_are_read(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("plain"));
    let source = source(&sqs, &queue).await;
    send(endpoint, &queue, json!({ "MessageBody": "hello" })).await;
    let got = one(source.as_ref(), LEASE).await;
    assert_eq!(got.message.body, "hello");
    assert!(got.message.headers.is_empty());
    assert_eq!(
        (got.message.content_type.as_ref(), got.message.ordering_key.as_ref()),
        (None, None)
    );
    ack(source.as_ref(), &got).await;
    let attributes = json!({
        "id": { "DataType": "String.uuid", "StringValue": "u" },
        "n": { "DataType": "Number.int", "StringValue": "7" },
    });
    let message = json!({ "MessageBody": "x", "MessageAttributes": attributes });
    send(endpoint, &queue, message).await;
    let got = one(source.as_ref(), LEASE).await;
    assert_eq!(got.message.headers.text("id"), Some("u"));
    assert_eq!(got.message.headers.get("n"), Some(&HeaderValue::Number("7".into())));
    // The custom types survive a copy.
    let sink = sink(&sqs, &queue).await;
    let copy = Outgoing { headers: got.message.headers.clone(), ..outgoing("copy") };
    sink.publish(copy).await.expect("published");
    ack(source.as_ref(), &got).await;
    let again = one(source.as_ref(), LEASE).await;
    assert_eq!(again.message.headers, got.message.headers);
}

/// C-1, C-3: strictly more each time, whether given back or left to lapse.
async fn c_1_the_count_goes_up_with_releases_and_lapses(endpoint: &str) {
    for stem in ["counts", "counts.fifo"] {
        let (sqs, queue) = (connect(endpoint).await, unique(stem));
        let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
        sink.publish(outgoing("counted")).await.expect("published");
        let mut seen = Vec::new();
        for _ in 0..3 {
            let got = one(source.as_ref(), LEASE).await;
            assert!(matches!(got.counted, Counted::AtLeast(_)));
            seen.push(count(&got));
            release(source.as_ref(), &got).await;
        }
        for _ in 0..2 {
            seen.push(count(&one(source.as_ref(), Duration::from_secs(1)).await));
        }
        assert_eq!(seen, [0, 1, 2, 3, 4].map(Count), "{queue}");
    }
}

async fn c_6_a_counter_among_the_attributes_is_not_read(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("counter"));
    let source = source(&sqs, &queue).await;
    let attribute = json!({ "DataType": "Number", "StringValue": "9" });
    let attributes = json!({ "ApproximateReceiveCount": attribute, "deliveryCount": attribute });
    send(endpoint, &queue, json!({ "MessageBody": "x", "MessageAttributes": attributes })).await;
    assert_eq!(count(&one(source.as_ref(), LEASE).await), Count(0));
}

async fn a_delayed_release_comes_back_after_the_delay_and_not_before(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("delayed"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    sink.publish(outgoing("later")).await.expect("published");
    let got = one(source.as_ref(), LEASE).await;
    let begin = Instant::now();
    // Rounded up to two seconds.
    let delay = Action::Release(Duration::from_millis(1_100));
    settle(source.as_ref(), &got, delay).await.expect("a release");
    let back = one(source.as_ref(), LEASE).await;
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1_100) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!((back.message.id.as_str(), count(&back)), (got.message.id.as_str(), Count(1)));
}

/// Servers differ in what they answer; none may lose the message, and none may make the host try for ever.
async fn a_stale_receipt_harms_nothing(endpoint: &str) {
    use pumphouse_contract::ports::Failure;
    let (sqs, queue) = (connect(endpoint).await, unique("stale"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    sink.publish(outgoing("stale")).await.expect("published");
    let stale = one(source.as_ref(), Duration::from_secs(1)).await;
    let current = one(source.as_ref(), LEASE).await;
    assert_ne!(stale.receipt, current.receipt);
    let released = settle(source.as_ref(), &stale, Action::Release(Duration::from_secs(30))).await;
    if let Err(unsettled) = released {
        assert_eq!(unsettled.failure, Failure::Gone, "{}", unsettled.text);
    }
    ack(source.as_ref(), &current).await;
    for action in [Action::Ack, Action::Release(Duration::ZERO)] {
        if let Err(unsettled) = settle(source.as_ref(), &stale, action).await {
            assert_eq!(unsettled.failure, Failure::Gone, "{}", unsettled.text);
        }
    }
    assert!(is_empty(source.as_ref()).await);
}

async fn fr_34_a_batch_answers_for_each_in_order(endpoint: &str) {
    use pumphouse_contract::Receipt;
    use pumphouse_contract::ports::Failure;
    let (sqs, queue) = (connect(endpoint).await, unique("batch"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    for at in 0..4 {
        sink.publish(outgoing(&at.to_string())).await.expect("published");
    }
    let mut got = Vec::new();
    while got.len() < 4 {
        got.extend(source.receive(ask(10, common::SOON, LEASE)).await.expect("a receive"));
    }
    let mut batch: Vec<Settlement> = got
        .iter()
        .enumerate()
        .map(|(at, delivery)| Settlement {
            receipt: delivery.receipt.clone(),
            action: if at % 2 == 0 { Action::Ack } else { Action::Release(Duration::ZERO) },
        })
        .collect();
    let foreign = Settlement { receipt: Receipt::from("foreign".to_owned()), action: Action::Ack };
    batch.insert(1, foreign.clone());
    let answers = source.settle(batch).await;
    let oks: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(oks, [true, false, true, true, true]);
    let refused = answers.into_iter().find_map(Result::err).expect("one refusal");
    assert_eq!((refused.settlement, refused.failure), (foreign, Failure::Refused));
    for _ in 0..2 {
        let back = one(source.as_ref(), LEASE).await;
        assert_eq!(count(&back), Count(1));
    }
    assert!(is_empty(source.as_ref()).await);
}

async fn an_empty_queue_is_waited_for_no_longer_than_asked(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("empty"));
    let source = source(&sqs, &queue).await;
    for (wait, least) in [(0, 0), (300, 300), (1_000, 900)]
        .map(|(w, l)| (Duration::from_millis(w), Duration::from_millis(l)))
    {
        let begin = Instant::now();
        assert!(source.receive(ask(10, wait, LEASE)).await.expect("a receive").is_empty());
        let took = begin.elapsed();
        assert!(took >= least && took < wait + Duration::from_secs(1), "{wait:?}: {took:?}");
    }
}

/// S-6: a group waits behind its head, released or not, and others do not.
async fn s_6_a_fifo_group_is_kept_in_order(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("order.fifo"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    assert_eq!(source.capabilities().ordering, Ordering::Key);
    for (key, body) in [("a", "a1"), ("a", "a2"), ("b", "b1")] {
        let message = Outgoing { ordering_key: Some(key.into()), ..outgoing(body) };
        sink.publish(message).await.expect("published");
    }
    let head = one(source.as_ref(), LEASE).await;
    assert_eq!(
        (head.message.body.as_ref(), head.message.ordering_key.as_deref()),
        (&b"a1"[..], Some("a"))
    );
    settle(source.as_ref(), &head, Action::Release(Duration::from_secs(1)))
        .await
        .expect("a release");
    let mut order = Vec::new();
    while order.len() < 3 {
        let got = one(source.as_ref(), LEASE).await;
        order.push(String::from_utf8_lossy(&got.message.body).into_owned());
        ack(source.as_ref(), &got).await;
    }
    assert_eq!(order, ["b1", "a1", "a2"]);
}
