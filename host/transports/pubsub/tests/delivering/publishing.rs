use std::collections::HashMap;
use std::time::{Duration, Instant};

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as api;
use pumphouse_contract::copy::{is_routed_copy, stamped_count};
use pumphouse_contract::ports::{Depth, PublishError};
use pumphouse_contract::{
    Count, Delivery, Outgoing, Provenance, Reason, Timestamp, Why, rejected_copy,
};
use pumphouse_pubsub::{Provision, Pubsub, SinkSpec, SourceSpec};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};

use crate::common::{
    Foreign, ack, connect, count, counted, emulator, is_empty, one, open, outgoing, release,
    settings, sink, spec, topic, unique,
};

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

/// Read as a rejection destination.
fn copies(name: &str) -> SourceSpec {
    SourceSpec { rejected: true, ..spec(name) }
}

/// C-11: the most attributes that an original can have.
#[tokio::test]
async fn c_11_a_message_of_a_hundred_attributes_is_rejected_whole() {
    let endpoint = emulator().await;
    let (pubsub, name, dead) = (connect(&endpoint).await, unique("full"), unique("full-dead"));
    let source = open(&pubsub, spec(&name)).await;
    let (sink, copies) = (sink(&pubsub, &dead).await, open(&pubsub, copies(&dead)).await);
    let mut foreign = Foreign::connect(&endpoint).await;
    for (count, size) in [(92, 10), (100, 10), (100, 1_000)] {
        let attributes: HashMap<_, _> =
            (0..count).map(|at| (format!("own-{at}"), "v".repeat(size))).collect();
        let message = api::PubsubMessage {
            data: vec![0, 1, 255].into(),
            attributes,
            ordering_key: "a key".into(),
            ..api::PubsubMessage::default()
        };
        foreign.publish(&name, message).await;
        let original = one(source.as_ref()).await;
        sink.publish(rejected(&original, "no good")).await.expect("published");
        ack(source.as_ref(), &original).await;
        let copy = one(copies.as_ref()).await;
        assert!(is_routed_copy(&copy.message.headers));
        for (name, value) in original.message.headers.iter() {
            assert_eq!(copy.message.headers.get(name), Some(value), "{count}: {name}");
        }
        // The eight names of the metadata, and nothing else.
        assert_eq!(copy.message.headers.len(), count + 8);
        assert_eq!(copy.message.body, original.message.body);
        assert_eq!(copy.message.ordering_key.as_deref(), Some("a key"));
        ack(copies.as_ref(), &copy).await;
    }
}

/// C-7: the stamped count, never the destination's own counter.
#[tokio::test]
async fn c_7_a_copy_keeps_its_count_however_often_it_is_read() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("kept"));
    let dead = unique("kept-dead");
    let source = open(&pubsub, counted(&name)).await;
    let (destination, copies) = (sink(&pubsub, &dead).await, open(&pubsub, copies(&dead)).await);
    sink(&pubsub, &name).await.publish(outgoing("body")).await.expect("published");
    release(source.as_ref(), &one(source.as_ref()).await, Duration::ZERO).await;
    let original = one(source.as_ref()).await;
    destination.publish(rejected(&original, "no good")).await.expect("published");
    ack(source.as_ref(), &original).await;
    for _ in 0..2 {
        let copy = one(copies.as_ref()).await;
        assert_eq!(stamped_count(&copy.message.headers), Count(2));
        release(copies.as_ref(), &copy, Duration::ZERO).await;
    }
}

#[tokio::test]
async fn c_11_metadata_are_readable_by_other_programs() {
    let endpoint = emulator().await;
    let (pubsub, name, dead) = (connect(&endpoint).await, unique("read"), unique("read-dead"));
    let source = open(&pubsub, spec(&name)).await;
    open(&pubsub, spec(&dead)).await;
    let mut foreign = Foreign::connect(&endpoint).await;
    let pairs = [("own", "x"), ("CloudPubSubDeadLetterSourceDeliveryCount", "5")];
    let attributes: HashMap<_, _> = pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    let message =
        api::PubsubMessage { data: "body".into(), attributes, ..api::PubsubMessage::default() };
    foreign.publish(&name, message).await;
    let original = one(source.as_ref()).await;
    assert!(original.message.headers.text("CloudPubSubDeadLetterSourceDeliveryCount").is_some());
    sink(&pubsub, &dead).await.publish(rejected(&original, "\0 ü")).await.expect("published");
    let copy = foreign.pull(&dead).await;
    let id = original.message.id.clone();
    let expected = [
        ("own", "x"),
        ("originalTopic", "orders"),
        ("originalMessageType", ""),
        ("rejectionReason", "Unacceptable"),
        ("rejectionMessage", "\0 ü"),
        ("rejectionTimestamp", "2026-11-30T02:50:14.123Z"),
        ("originalMessageId", id.as_str()),
        ("rejectedBy", "orders/acme/orders@abc"),
        ("deliveryCount", "1"),
    ];
    let expected: HashMap<_, _> = expected.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    assert_eq!((copy.attributes, copy.data.as_ref()), (expected, &b"body"[..]));
}

async fn is_missing(pubsub: &Pubsub, name: &str) -> bool {
    let found = pubsub.sink(SinkSpec::new(name, Provision::Validate)).await;
    found.is_err_and(|error| !error.is_retryable())
}

/// C-13: a publish never makes its destination. A key is not blocked by what failed before.
#[tokio::test]
async fn c_13_a_missing_topic_is_told_at_the_publish_and_never_made() {
    let endpoint = emulator().await;
    let (pubsub, name) = (connect(&endpoint).await, unique("absent"));
    let keyed = || Outgoing { ordering_key: Some("key".into()), ..outgoing("body") };
    let assumed =
        pubsub.sink(SinkSpec::new(&name, Provision::Assume)).await.expect("a sink of no topic");
    for message in [keyed(), keyed(), outgoing("body")] {
        let error = assumed.publish(message).await.expect_err("no topic");
        assert!(matches!(&error, PublishError::Missing(at, _) if *at == name), "{error}");
    }
    assert!(is_missing(&pubsub, &name).await);
    assert_eq!(assumed.depth().await, Ok(Depth::default()));
    // A topic that was just made keeps nothing until it has a subscription.
    let mut foreign = Foreign::connect(&endpoint).await;
    let made = api::Topic { name: topic(&name), ..api::Topic::default() };
    foreign.publisher.create_topic(made).await.expect("made");
    let error = assumed.publish(keyed()).await.expect_err("nobody would keep it");
    assert!(
        matches!(&error, PublishError::Missing(_, why) if why.contains("subscription")),
        "{error}"
    );
    // Once it has one, the same sink works.
    let source = open(&pubsub, spec(&name)).await;
    assumed.publish(keyed()).await.expect("published");
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    // And says so again once it is gone.
    let gone = api::DeleteTopicRequest { topic: topic(&name) };
    foreign.publisher.delete_topic(gone).await.expect("deleted");
    let error = assumed.publish(keyed()).await.expect_err("no topic");
    assert!(matches!(error, PublishError::Missing(..)), "{error}");
}

/// C-9: what the service says decides what is told, and nothing is tried twice.
#[tokio::test]
async fn c_9_a_failed_publish_is_told_at_once_and_tried_once() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let (pubsub, name) = (connect(&proxy.endpoint()).await, unique("failing"));
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    let keyed = || Outgoing { ordering_key: Some("key".into()), ..outgoing("body") };
    for (status, refused) in [
        (code::UNAVAILABLE, false),
        (code::RESOURCE_EXHAUSTED, false),
        (code::PERMISSION_DENIED, true),
        (code::INVALID_ARGUMENT, true),
    ] {
        let rule = proxy.on("Publish").times(1).status(status, "as told");
        let error = sink.publish(keyed()).await.expect_err("refused");
        assert_eq!(matches!(error, PublishError::Refused(..)), refused, "{error}");
        assert!(error.to_string().contains("as told") && rule.count() == 1, "{error}");
    }
    assert_eq!(proxy.count("Publish"), 4);
    sink.publish(keyed()).await.expect("the key is not blocked");
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    assert!(is_empty(source.as_ref()).await);
}

/// C-9: an unknown outcome is a failed one. The message may be there.
#[tokio::test]
async fn c_9_an_answer_that_is_lost_or_late_is_a_failed_publish() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let mut settings = settings(&proxy.endpoint());
    settings.timeouts.publish = Duration::from_secs(2);
    let pubsub = Pubsub::connect(settings).await.expect("a connection");
    let name = unique("unknown");
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    let keyed = || Outgoing { ordering_key: Some("key".into()), ..outgoing("body") };
    // A first call may take the emulator a while.
    while sink.publish(outgoing("first")).await.is_err() {}
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    let lost = proxy.on("Publish").times(1).drop_after();
    let error = sink.publish(keyed()).await.expect_err("no answer");
    assert!(matches!(error, PublishError::Unavailable(..)) && lost.count() == 1, "{error}");
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    let late = proxy.on("Publish").times(1).hang();
    let begun = Instant::now();
    let error = sink.publish(keyed()).await.expect_err("no answer");
    assert!(matches!(error, PublishError::Unavailable(..)) && late.count() == 1, "{error}");
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_millis(1_900) && waited < Duration::from_secs(10),
        "{waited:?}"
    );
    sink.publish(keyed()).await.expect("the key is not blocked");
    assert_eq!(one(source.as_ref()).await.message.body, "body");
}

/// Nobody waits for a server that is away, and the same sink works when it is back.
#[tokio::test]
async fn a_publish_to_nobody_fails_and_works_again() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let (pubsub, name) = (connect(&proxy.endpoint()).await, unique("away"));
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    sink.publish(outgoing("before")).await.expect("published");
    proxy.refuse(true).await;
    proxy.cut().await;
    let error = sink.publish(outgoing("meanwhile")).await.expect_err("nobody is there");
    assert!(matches!(error, PublishError::Unavailable(..)), "{error}");
    proxy.heal().await;
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = sink.publish(outgoing("after")).await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(one(source.as_ref()).await.message.body, "before");
}
