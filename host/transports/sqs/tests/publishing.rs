//! Publishing, and the copies of rejected messages, against both servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{
    LEASE, ack, connect, count, foreign, is_empty, one, outgoing, rejected_source, release, send,
    sink, source, unique, url,
};
use pumphouse_contract::copy::{is_routed_copy, stamped_count};
use pumphouse_contract::ports::PublishError;
use pumphouse_contract::{
    Count, Delivery, Headers, Outgoing, Provenance, Reason, Timestamp, Why, rejected_copy,
};
use pumphouse_sqs::{PACKED, Provision, SinkSpec};
use serde_json::{Value, json};

against_both!(
    fr_08_eight_nine_and_ten_attributes_are_rejected_whole,
    c_7_a_copy_keeps_its_count_however_often_it_is_read,
    c_11_metadata_is_readable_by_other_programs,
    fr_09_a_fifo_destination_gets_group_and_deduplication_id,
    a_missing_queue_is_told_at_the_publish_and_never_made,
    a_depth_counts_waiting_leased_and_delayed_messages,
);

/// The copy that the host makes of a delivery for its rejection destination.
fn rejected(delivery: &Delivery, why: &str) -> Outgoing {
    let from = Provenance {
        source: "orders",
        rejected_by: "orders/acme/orders@abc",
        now: Timestamp(1_796_007_014_123),
    };
    let why = Why::Handler(why.into());
    rejected_copy(&delivery.message, count(delivery), Reason::Unacceptable, &why, from)
}

fn attributes(number: usize) -> Value {
    let one = |at: usize| match at % 3 {
        0 => json!({ "DataType": "String", "StringValue": format!("value {at}") }),
        1 => json!({ "DataType": "Number.int", "StringValue": at.to_string() }),
        _ => json!({ "DataType": "Binary", "BinaryValue": "AAEC/w==" }),
    };
    (0..number).map(|at| (format!("own-{at}"), one(at))).collect::<serde_json::Map<_, _>>().into()
}

async fn fr_08_eight_nine_and_ten_attributes_are_rejected_whole(endpoint: &str) {
    let sqs = connect(endpoint).await;
    for number in 8..=10 {
        let (queue, dead) = (unique("full"), unique("full-dead"));
        let source = source(&sqs, &queue).await;
        let (sink, copies) = (sink(&sqs, &dead).await, rejected_source(&sqs, &dead).await);
        let message = json!({ "MessageBody": "body", "MessageAttributes": attributes(number) });
        send(endpoint, &queue, message).await;
        let original = one(source.as_ref(), LEASE).await;
        sink.publish(rejected(&original, "no good")).await.expect("published");
        let copy = one(copies.as_ref(), LEASE).await;
        assert!(is_routed_copy(&copy.message.headers));
        for (name, value) in original.message.headers.iter() {
            assert_eq!(copy.message.headers.get(name), Some(value), "{number}: {name}");
        }
        // The eight names of the metadata, and nothing else.
        assert_eq!(copy.message.headers.len(), original.message.headers.len() + 8, "{number}");
        assert_eq!(copy.message.body, "body");
        assert_eq!(copy.message.headers.text("originalMessageId"), Some(&*original.message.id));
    }
}

/// C-7: the stamped count, never the destination's own counter.
async fn c_7_a_copy_keeps_its_count_however_often_it_is_read(endpoint: &str) {
    let (sqs, queue, dead) = (connect(endpoint).await, unique("kept"), unique("kept-dead"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &dead).await);
    let copies = rejected_source(&sqs, &dead).await;
    send(endpoint, &queue, json!({ "MessageBody": "body" })).await;
    release(source.as_ref(), &one(source.as_ref(), LEASE).await).await;
    let original = one(source.as_ref(), LEASE).await;
    sink.publish(rejected(&original, "no good")).await.expect("published");
    for delivery in 0..2 {
        let copy = one(copies.as_ref(), LEASE).await;
        assert_eq!(stamped_count(&copy.message.headers), Count(2));
        assert_eq!(count(&copy), Count(delivery));
        release(copies.as_ref(), &copy).await;
    }
}

async fn c_11_metadata_is_readable_by_other_programs(endpoint: &str) {
    let (sqs, queue, dead) = (connect(endpoint).await, unique("read"), unique("read-dead"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &dead).await);
    send(endpoint, &queue, json!({ "MessageBody": "body" })).await;
    let original = one(source.as_ref(), LEASE).await;
    sink.publish(rejected(&original, "\0 ü \u{ffff}")).await.expect("published");
    let receive = json!({
        "QueueUrl": url(endpoint, &dead).await,
        "MessageAttributeNames": ["All"],
        "WaitTimeSeconds": 5,
    });
    let got = foreign(endpoint, "ReceiveMessage", receive).await;
    let message = &got["Messages"][0];
    assert_eq!(message["Body"], "body");
    let packed = message["MessageAttributes"][PACKED]["StringValue"].as_str().expect("metadata");
    let metadata: Value = serde_json::from_str(packed).expect("JSON");
    assert_eq!(metadata["rejectionReason"], "Unacceptable");
    assert_eq!(metadata["rejectionMessage"], "\0 ü \u{ffff}");
    assert_eq!(metadata["rejectionTimestamp"], "2026-11-30T02:50:14.123Z");
    assert_eq!(
        (&metadata["deliveryCount"], &metadata["originalTopic"]),
        (&"1".into(), &"orders".into())
    );
}

/// Against fauxqs alone: ElasticMQ has no such attribute.
#[tokio::test]
async fn c_11_a_copy_fits_the_queues_own_size_limit() {
    let endpoint = &common::fauxqs().await;
    let (sqs, queue, dead) = (connect(endpoint).await, unique("small"), unique("small-dead"));
    let source = source(&sqs, &queue).await;
    let limits = json!({ "QueueName": dead, "Attributes": { "MaximumMessageSize": "2048" } });
    foreign(endpoint, "CreateQueue", limits).await;
    let sink = sqs.sink(SinkSpec::new(&dead, Provision::Validate)).await.expect("a sink");
    send(endpoint, &queue, json!({ "MessageBody": "b".repeat(1_000) })).await;
    let original = one(source.as_ref(), LEASE).await;
    sink.publish(rejected(&original, &"ä".repeat(3_000))).await.expect("published");
    let copies = rejected_source(&sqs, &dead).await;
    let copy = one(copies.as_ref(), LEASE).await;
    let description = copy.message.headers.text("rejectionMessage").expect("a description");
    assert!(description.ends_with('…') && description.len() > 200, "{description}");
    let refused = sink.publish(outgoing(&"b".repeat(2_049))).await.expect_err("too large");
    assert!(matches!(&refused, PublishError::Refused(_, why) if why.contains("2048")), "{refused}");
}

/// FR-09: two messages of equal bodies are two copies; the same move twice is one. The queue has no content-based
/// deduplication.
async fn fr_09_a_fifo_destination_gets_group_and_deduplication_id(endpoint: &str) {
    let sqs = connect(endpoint).await;
    let (queue, dead) = (unique("moved.fifo"), unique("moved-dead.fifo"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &dead).await);
    let copies = rejected_source(&sqs, &dead).await;
    for id in ["1", "2"] {
        let message = json!({
            "MessageBody": "same", "MessageGroupId": "group-a", "MessageDeduplicationId": id,
        });
        send(endpoint, &queue, message).await;
        let original = one(source.as_ref(), LEASE).await;
        let copy = rejected(&original, "no good");
        sink.publish(copy.clone()).await.expect("published");
        sink.publish(copy).await.expect("published again");
        ack(source.as_ref(), &original).await;
    }
    for _ in 0..2 {
        let copy = one(copies.as_ref(), LEASE).await;
        assert_eq!(copy.message.ordering_key.as_deref(), Some("group-a"));
        ack(copies.as_ref(), &copy).await;
    }
    assert!(is_empty(copies.as_ref()).await);
}

async fn a_missing_queue_is_told_at_the_publish_and_never_made(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("absent"));
    let refused = sqs.sink(SinkSpec::new(&queue, Provision::Validate)).await;
    let refused = refused.err().expect("it does not exist");
    assert!(!refused.is_retryable() && refused.to_string().contains(&queue), "{refused}");
    let sink = sqs.sink(SinkSpec::new(&queue, Provision::Assume)).await.expect("a sink");
    for _ in 0..2 {
        let error = sink.publish(outgoing("lost")).await.expect_err("no queue");
        assert!(matches!(&error, PublishError::Missing(name, _) if *name == queue), "{error}");
    }
    assert!(matches!(sink.depth().await, Err(PublishError::Missing(..))));
    // Once someone makes it, the same sink works.
    let source = source(&sqs, &queue).await;
    sink.publish(outgoing("found")).await.expect("published");
    ack(source.as_ref(), &one(source.as_ref(), LEASE).await).await;
    // And says so again once it is gone.
    let gone = json!({ "QueueUrl": url(endpoint, &queue).await });
    foreign(endpoint, "DeleteQueue", gone).await;
    let error = sink.publish(outgoing("lost")).await.expect_err("no queue");
    assert!(matches!(error, PublishError::Missing(..)), "{error}");
}

/// S-7: the age of the oldest is not to be had.
async fn a_depth_counts_waiting_leased_and_delayed_messages(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("depth"));
    let (source, sink) = (source(&sqs, &queue).await, sink(&sqs, &queue).await);
    assert_eq!(sink.depth().await.expect("a depth").messages, Some(0));
    sink.publish(outgoing("leased")).await.expect("published");
    one(source.as_ref(), LEASE).await;
    sink.publish(outgoing("waiting")).await.expect("published");
    send(endpoint, &queue, json!({ "MessageBody": "delayed", "DelaySeconds": 60 })).await;
    let depth = sink.depth().await.expect("a depth");
    assert_eq!((depth.messages, depth.oldest_age), (Some(3), None::<Duration>));
}

/// FR-08 is proven against a server that enforces the limit, as SQS does. fauxqs does not.
#[tokio::test]
async fn fr_08_elasticmq_enforces_the_limit_of_ten() {
    let endpoint = &common::elasticmq().await;
    let (sqs, queue) = (connect(endpoint).await, unique("eleven"));
    let sink = sink(&sqs, &queue).await;
    let eleven: Headers = (0..11).map(|at| (format!("h{at}"), "v")).collect();
    let message =
        Outgoing { headers: eleven, body: Bytes::from_static(b"x"), ..Outgoing::default() };
    assert!(matches!(sink.publish(message).await, Err(PublishError::Refused(..))));
    let message = json!({
        "QueueUrl": url(endpoint, &queue).await,
        "MessageBody": "x",
        "MessageAttributes": attributes(11),
    });
    let answer = pumphouse_test_brokers::raw::sqs(endpoint, "SendMessage", &message).await;
    assert_eq!(answer.expect("an answer").status, 400);
}
