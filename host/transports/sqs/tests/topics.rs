//! SNS to SQS, against fauxqs: raw, enveloped and FIFO.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{LEASE, SOON, ack, connect, count, is_empty, one, release, send, settle, unique};
use pumphouse_contract::ports::{Action, Source};
use pumphouse_contract::{Count, HeaderValue};
use pumphouse_sqs::{Envelope, Provision, ProvisionError, SourceSpec, Sqs};
use pumphouse_test_brokers::raw;
use serde_json::json;

/// A new topic that feeds a new queue.
fn fed(stem: &str, envelope: Envelope) -> SourceSpec {
    let queue = unique(stem);
    let topic = Some(format!("topic-{queue}"));
    SourceSpec { topic, envelope, ..SourceSpec::new(queue, Provision::Create) }
}

async fn made(sqs: &Sqs, spec: &SourceSpec) -> Arc<dyn Source> {
    sqs.source(spec.clone()).await.expect("a source")
}

fn arn(spec: &SourceSpec) -> String {
    format!("arn:aws:sns:us-east-1:000000000000:{}", spec.topic.as_deref().expect("a topic"))
}

async fn publish(endpoint: &str, parameters: &[(&str, &str)]) {
    let answer = raw::sns(endpoint, "Publish", parameters).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

const ATTRIBUTES: [(&str, &str); 6] = [
    ("MessageAttributes.entry.1.Name", "kind"),
    ("MessageAttributes.entry.1.Value.DataType", "String"),
    ("MessageAttributes.entry.1.Value.StringValue", "order"),
    ("MessageAttributes.entry.2.Name", "bytes"),
    ("MessageAttributes.entry.2.Value.DataType", "Binary"),
    ("MessageAttributes.entry.2.Value.BinaryValue", "AP8="),
];

/// Both forms give the same message, and the count of the queue.
#[tokio::test]
async fn c_1_raw_and_enveloped_deliveries_are_read_alike_and_counted() {
    let endpoint = common::fauxqs().await;
    let sqs = connect(&endpoint).await;
    for envelope in [Envelope::Raw, Envelope::Enveloped] {
        let spec = fed("fed", envelope);
        let source = made(&sqs, &spec).await;
        let topic = arn(&spec);
        let mut parameters = vec![("TopicArn", topic.as_str()), ("Message", "hello \"ä\"")];
        parameters.extend(ATTRIBUTES);
        publish(&endpoint, &parameters).await;
        for presented in 0..3 {
            let got = one(source.as_ref(), LEASE).await;
            assert_eq!(got.undecodable, None);
            assert_eq!(got.message.body, "hello \"ä\"".as_bytes(), "{envelope:?}");
            assert_eq!(got.message.headers.text("kind"), Some("order"), "{envelope:?}");
            let bytes = Some(&HeaderValue::Binary((&b"\0\xff"[..]).into()));
            assert_eq!(got.message.headers.get("bytes"), bytes, "{envelope:?}");
            assert!(got.message.published_at.is_some());
            assert_eq!(count(&got), Count(presented));
            release(source.as_ref(), &got).await;
        }
        let lapsing = one(source.as_ref(), Duration::from_secs(1)).await;
        let last = one(source.as_ref(), LEASE).await;
        assert_eq!([count(&lapsing), count(&last)], [3, 4].map(Count));
        ack(source.as_ref(), &last).await;
        assert!(is_empty(source.as_ref()).await);
    }
}

/// FR-06: a body that is no envelope is handed over as undecodable, and can be settled.
#[tokio::test]
async fn fr_06_a_body_without_an_envelope_is_undecodable() {
    let endpoint = common::fauxqs().await;
    let sqs = connect(&endpoint).await;
    let spec = fed("bare", Envelope::Enveloped);
    let source = made(&sqs, &spec).await;
    send(&endpoint, &spec.queue, json!({ "MessageBody": "no envelope" })).await;
    let got = one(source.as_ref(), LEASE).await;
    assert!(got.undecodable.as_deref().is_some_and(|why| why.contains("envelope")));
    assert_eq!(got.message.body, "no envelope");
    ack(source.as_ref(), &got).await;
}

/// S-6 through a FIFO topic, in both forms.
#[tokio::test]
async fn s_6_a_fifo_topic_keeps_a_groups_order() {
    let endpoint = common::fauxqs().await;
    let sqs = connect(&endpoint).await;
    for envelope in [Envelope::Raw, Envelope::Enveloped] {
        let spec = fed("group.fifo", envelope);
        let source = made(&sqs, &spec).await;
        let topic = arn(&spec);
        for body in ["1", "2"] {
            let parameters = [
                ("TopicArn", topic.as_str()),
                ("Message", body),
                ("MessageGroupId", "g"),
                ("MessageDeduplicationId", body),
            ];
            publish(&endpoint, &parameters).await;
        }
        let head = one(source.as_ref(), LEASE).await;
        assert_eq!(
            (head.message.body.as_ref(), head.message.ordering_key.as_deref()),
            (&b"1"[..], Some("g"))
        );
        let delay = Action::Release(Duration::from_secs(1));
        settle(source.as_ref(), &head, delay).await.expect("a release");
        for body in ["1", "2"] {
            let got = one(source.as_ref(), SOON).await;
            assert_eq!(got.message.body, body);
            ack(source.as_ref(), &got).await;
        }
    }
}

#[tokio::test]
async fn making_a_fed_queue_twice_is_the_same_as_once_and_then_it_validates() {
    let endpoint = common::fauxqs().await;
    let sqs = connect(&endpoint).await;
    for stem in ["twice", "twice.fifo"] {
        let spec = fed(stem, Envelope::Raw);
        made(&sqs, &spec).await;
        made(&sqs, &spec).await;
        let validated = SourceSpec { provision: Provision::Validate, ..spec.clone() };
        let source = made(&sqs, &validated).await;
        let topic = arn(&spec);
        let parameters = [
            ("TopicArn", topic.as_str()),
            ("Message", "once"),
            ("MessageGroupId", "g"),
            ("MessageDeduplicationId", "d"),
        ];
        let fifo = stem.ends_with(".fifo");
        publish(&endpoint, if fifo { &parameters } else { &parameters[..2] }).await;
        ack(source.as_ref(), &one(source.as_ref(), LEASE).await).await;
        assert!(is_empty(source.as_ref()).await, "one subscription, so one message");
    }
}

async fn differences(sqs: &Sqs, spec: SourceSpec) -> Vec<String> {
    match sqs.source(spec).await.err().expect("it differs") {
        ProvisionError::Differs { differences, .. } => differences,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_difference_of_topic_and_subscription_is_named() {
    let endpoint = common::fauxqs().await;
    let sqs = connect(&endpoint).await;
    let spec = fed("differs", Envelope::Raw);
    let validate = SourceSpec { provision: Provision::Validate, ..spec.clone() };
    // The queue alone: no topic.
    let alone = SourceSpec { topic: None, ..spec.clone() };
    made(&sqs, &alone).await;
    let found = differences(&sqs, validate.clone()).await;
    assert!(matches!(found.as_slice(), [one] if one.contains("does not exist")), "{found:?}");
    // The topic without a subscription, and the queue without a policy.
    let topic = [("Name", spec.topic.as_deref().expect("a topic"))];
    raw::sns(&endpoint, "CreateTopic", &topic).await.expect("an answer");
    let found = differences(&sqs, validate.clone()).await;
    assert!(
        matches!(found.as_slice(), [policy, subscription]
        if policy.contains("Policy") && subscription.contains("no subscription")),
        "{found:?}"
    );
    // A subscription of the other form is told, and not edited, under create too.
    made(&sqs, &spec).await;
    for provision in [Provision::Validate, Provision::Create] {
        let other = SourceSpec { envelope: Envelope::Enveloped, provision, ..spec.clone() };
        let found = differences(&sqs, other).await;
        assert!(
            matches!(found.as_slice(), [one] if one.contains("RawMessageDelivery")),
            "{found:?}"
        );
    }
    made(&sqs, &validate).await;
}
