//! Making and checking queues, against both servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::time::{Duration, Instant};

use common::{LEASE, SOON, ask, connect, foreign, one, outgoing, settings, sink, unique, url};
use pumphouse_sqs::{
    NativeRedrive, Provision, ProvisionError, QueueFacts, SinkSpec, SourceSpec, Sqs, SqsError,
};
use serde_json::{Value, json};

against_both!(
    every_spelling_of_a_queue_reaches_it,
    a_redrive_policy_is_made_where_asked_for_and_read_back,
    c_15_a_policy_that_is_found_is_never_edited,
    c_15_the_broker_moves_a_message_by_itself_after_m_deliveries,
    assuming_asks_for_nothing_but_the_url,
);

fn native(limit: u32, dead_letter: &str) -> Option<NativeRedrive> {
    Some(NativeRedrive { max_receive_count: limit, dead_letter: dead_letter.into() })
}

async fn attributes(endpoint: &str, queue: &str) -> Value {
    let input = json!({ "QueueUrl": url(endpoint, queue).await, "AttributeNames": ["All"] });
    foreign(endpoint, "GetQueueAttributes", input).await["Attributes"].clone()
}

async fn set(endpoint: &str, queue: &str, name: &str, value: String) {
    let input = json!({ "QueueUrl": url(endpoint, queue).await, "Attributes": { name: value } });
    foreign(endpoint, "SetQueueAttributes", input).await;
}

async fn every_spelling_of_a_queue_reaches_it(endpoint: &str) {
    let (sqs, queue) = (connect(endpoint).await, unique("spelled"));
    let sink = sink(&sqs, &queue).await;
    let arn = attributes(endpoint, &queue).await["QueueArn"].as_str().expect("an ARN").to_owned();
    for spelling in [queue.clone(), url(endpoint, &queue).await, arn] {
        for provision in [Provision::Create, Provision::Validate, Provision::Assume] {
            let source = sqs.source(SourceSpec::new(&spelling, provision)).await;
            let source = source.unwrap_or_else(|error| panic!("{spelling}: {error}"));
            sink.publish(outgoing(&spelling)).await.expect("published");
            let got = one(source.as_ref(), LEASE).await;
            assert_eq!(got.message.body, spelling);
            common::ack(source.as_ref(), &got).await;
        }
    }
}

/// F-2, F-7: what the queue itself says.
async fn a_redrive_policy_is_made_where_asked_for_and_read_back(endpoint: &str) {
    for stem in ["native", "native.fifo"] {
        let (sqs, queue) = (connect(endpoint).await, unique(stem));
        let dead = unique(stem);
        let plain = SourceSpec::new(&queue, Provision::Create);
        sqs.source(plain.clone()).await.expect("a source");
        assert_eq!(sqs.native_limit(&plain).await, Ok(None), "none is implied");
        let asked = SourceSpec { native: native(5, &dead), ..plain.clone() };
        for _ in 0..2 {
            sqs.source(asked.clone()).await.expect("a source");
        }
        let facts: QueueFacts = sqs.facts(&plain).await.expect("facts");
        assert_eq!(facts.native_limit, Some(5));
        assert!(facts.native_dead_letter.is_some_and(|arn| arn.ends_with(&dead)));
        let validated = SourceSpec { provision: Provision::Validate, ..asked };
        sqs.source(validated).await.expect("a source");
    }
}

async fn c_15_a_policy_that_is_found_is_never_edited(endpoint: &str) {
    let (sqs, queue, dead) = (connect(endpoint).await, unique("found"), unique("found-dead"));
    let asked = |limit| SourceSpec {
        native: native(limit, &dead),
        ..SourceSpec::new(&queue, Provision::Create)
    };
    sqs.source(asked(5)).await.expect("a source");
    let before = attributes(endpoint, &queue).await["RedrivePolicy"].clone();
    let error = sqs.source(asked(7)).await.err().expect("it differs");
    assert!(error.to_string().contains("maxReceiveCount is 5 and not 7"), "{error}");
    assert!(!error.is_retryable());
    // Without demands of its own, any policy is fine.
    sqs.source(SourceSpec::new(&queue, Provision::Create)).await.expect("a source");
    assert_eq!(attributes(endpoint, &queue).await["RedrivePolicy"], before);
}

/// M, as F-2 understands it: the broker makes M deliveries, and moves the message without metadata.
async fn c_15_the_broker_moves_a_message_by_itself_after_m_deliveries(endpoint: &str) {
    let (sqs, queue, dead) = (connect(endpoint).await, unique("moves"), unique("moves-dead"));
    let spec =
        SourceSpec { native: native(2, &dead), ..SourceSpec::new(&queue, Provision::Create) };
    let source = sqs.source(spec).await.expect("a source");
    let copies = common::rejected_source(&sqs, &dead).await;
    sink(&sqs, &queue).await.publish(outgoing("poison")).await.expect("published");
    for _ in 0..2 {
        common::release(source.as_ref(), &one(source.as_ref(), LEASE).await).await;
    }
    // It moves when the next receive would deliver it.
    let third = source.receive(ask(1, Duration::from_secs(1), LEASE)).await.expect("a receive");
    assert!(third.is_empty());
    let moved = copies.receive(ask(1, SOON, LEASE)).await.expect("a receive");
    let moved = moved.first().expect("a moved message");
    assert_eq!(moved.message.body, "poison");
    assert!(moved.message.headers.is_empty());
}

/// Against fauxqs alone: ElasticMQ keeps no retention, and does not say one.
#[tokio::test]
async fn every_difference_of_a_queue_is_named_at_once() {
    let endpoint = &common::fauxqs().await;
    let (sqs, queue, dead) = (connect(endpoint).await, unique("other"), unique("other-dead"));
    sqs.source(SourceSpec::new(&queue, Provision::Create)).await.expect("a source");
    set(endpoint, &queue, "MessageRetentionPeriod", "3600".into()).await;
    let facts = sqs.facts(&SourceSpec::new(&queue, Provision::Assume)).await.expect("facts");
    assert_eq!(facts.retention, Some(Duration::from_secs(3_600)));
    let asked = SourceSpec {
        native: native(3, &dead),
        retention: Some(Duration::from_secs(7_200)),
        ..SourceSpec::new(&queue, Provision::Validate)
    };
    let error = sqs.source(asked.clone()).await.err().expect("it differs");
    let ProvisionError::Differs { differences, .. } = &error else { panic!("{error}") };
    assert!(
        matches!(differences.as_slice(), [missing, retention]
        if missing.contains(&dead) && retention.contains("3600")),
        "{differences:?}"
    );
    common::sink(&sqs, &dead).await;
    let error = sqs.source(asked).await.err().expect("it differs");
    let ProvisionError::Differs { differences, .. } = &error else { panic!("{error}") };
    assert!(
        matches!(differences.as_slice(), [retention, policy]
        if retention.contains("7200") && policy.contains("RedrivePolicy")),
        "{differences:?}"
    );
    let absent = SourceSpec::new(unique("absent"), Provision::Validate);
    let error = sqs.source(absent).await.err().expect("it does not exist");
    assert!(error.to_string().contains("does not exist"), "{error}");
}

async fn assuming_asks_for_nothing_but_the_url(endpoint: &str) {
    use pumphouse_test_brokers::proxy::Proxy;
    let (sqs, queue) = (connect(endpoint).await, unique("assumed"));
    sink(&sqs, &queue).await;
    let proxy = Proxy::start(endpoint).await.expect("a proxy");
    let sqs = connect(&proxy.endpoint()).await;
    sqs.source(SourceSpec::new(&queue, Provision::Assume)).await.expect("a source");
    sqs.sink(SinkSpec::new(&queue, Provision::Assume)).await.expect("a sink");
    let by_url = SourceSpec::new(url(endpoint, &queue).await, Provision::Assume);
    sqs.source(by_url).await.expect("a source");
    let counts: Vec<_> = proxy.counts().into_iter().collect();
    assert_eq!(counts, [("GetQueueUrl".to_owned(), 2)]);
}

/// A rejection destination that the host makes keeps messages as long as can be.
#[tokio::test]
async fn a_made_destination_keeps_messages_for_fourteen_days() {
    let endpoint = common::fauxqs().await;
    let (sqs, queue) = (connect(&endpoint).await, unique("kept"));
    sink(&sqs, &queue).await;
    assert_eq!(attributes(&endpoint, &queue).await["MessageRetentionPeriod"], "1209600");
    // One that exists is taken as it is.
    set(&endpoint, &queue, "MessageRetentionPeriod", "3600".into()).await;
    sink(&sqs, &queue).await;
    assert_eq!(attributes(&endpoint, &queue).await["MessageRetentionPeriod"], "3600");
}

/// A broker that is away is told apart from a configuration that is wrong.
#[tokio::test]
async fn a_broker_that_is_away_is_waited_for_and_a_wrong_configuration_is_not() {
    let nowhere = "http://127.0.0.1:9";
    let sqs = connect(nowhere).await;
    let begin = Instant::now();
    for provision in [Provision::Create, Provision::Validate, Provision::Assume] {
        let error = sqs.source(SourceSpec::new("orders", provision)).await.err().expect("away");
        assert!(error.is_retryable(), "{error}");
        let error = sqs.sink(SinkSpec::new("orders", provision)).await.err().expect("away");
        assert!(error.is_retryable(), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    let wrong = SourceSpec::new("no queue", Provision::Create);
    let error = sqs.source(wrong).await.err().expect("wrong");
    assert!(matches!(error, ProvisionError::Invalid { .. }), "{error}");
    let mut settings = settings(nowhere);
    settings.endpoint = Some("localhost:9324".into());
    assert_eq!(
        Sqs::connect(settings).await.err(),
        Some(SqsError::Endpoint("localhost:9324".into()))
    );
}
