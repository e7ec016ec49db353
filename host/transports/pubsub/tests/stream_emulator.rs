//! Streams against Google's emulator, which ignores flow control, keeps nothing over a restart, and answers a stream
//! with its first message.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod streaming;

use std::time::{Duration, Instant};

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::publisher_client::PublisherClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::subscriber_client::SubscriberClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    DeadLetterPolicy, PublishRequest, PubsubMessage, Subscription, Topic,
};
use pumphouse_test_brokers::PubsubEmulator;
use streaming::{Reader, S, text, texts};
use tonic::transport::Channel;

const TOPIC: &str = "projects/project/topics/work";
const DEAD: &str = "projects/project/topics/dead";

/// Topics, and the subscription `sub`, which counts.
async fn channels(emulator: &PubsubEmulator) {
    let channel = Channel::from_shared(emulator.endpoint()).unwrap().connect().await.unwrap();
    let mut publisher = PublisherClient::new(channel.clone());
    for name in [TOPIC, DEAD] {
        let topic = Topic { name: name.to_owned(), ..Topic::default() };
        publisher.create_topic(topic).await.unwrap();
    }
    let policy =
        DeadLetterPolicy { dead_letter_topic: DEAD.to_owned(), max_delivery_attempts: 100 };
    let subscription = Subscription {
        name: "projects/project/subscriptions/sub".to_owned(),
        topic: TOPIC.to_owned(),
        enable_message_ordering: true,
        ack_deadline_seconds: 10,
        dead_letter_policy: Some(policy),
        ..Subscription::default()
    };
    SubscriberClient::new(channel).create_subscription(subscription).await.unwrap();
}

async fn publish(emulator: &PubsubEmulator, key: &str, data: &[&str]) {
    let channel = Channel::from_shared(emulator.endpoint()).unwrap().connect().await.unwrap();
    let message = |data: &&str| PubsubMessage {
        data: data.as_bytes().to_vec().into(),
        ordering_key: key.to_owned(),
        ..PubsubMessage::default()
    };
    let messages = data.iter().map(message).collect();
    let request = PublishRequest { topic: TOPIC.to_owned(), messages };
    PublisherClient::new(channel).publish(request).await.unwrap();
}

async fn until_held(reader: &Reader, held: usize) {
    let end = Instant::now() + S(10);
    while reader.source.held() != held {
        assert!(Instant::now() < end, "{} are held, not {held}", reader.source.held());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// S-6 on the real emulator, and what ADR 8 says of the followers' counts.
#[tokio::test]
async fn a_deferring_head_keeps_its_order_and_its_followers_count_with_it() {
    let emulator = PubsubEmulator::start().await.unwrap();
    channels(&emulator).await;
    let reader = Reader::new(&emulator.endpoint(), |spec| spec.ordered = true).await;
    // Readiness does not wait for a message.
    assert_eq!(reader.receive_for(1, S(0)).await.unwrap().len(), 0);
    publish(&emulator, "k", &["a", "b", "c"]).await;
    let mut seen = Vec::new();
    for delay in [S(0), S(2)] {
        let head = reader.one().await;
        seen.push((text(&head), head.counted.count().0));
        until_held(&reader, 2).await;
        reader.release(vec![head], delay).await;
    }
    // The emulator sends it at once, although the head of its key is away.
    publish(&emulator, "k", &["d"]).await;
    for _ in 0..4 {
        let next = reader.one().await;
        seen.push((text(&next), next.counted.count().0));
        reader.ack(vec![next]).await;
    }
    let expected = [("a", 0), ("a", 1), ("a", 2), ("b", 2), ("c", 2), ("d", 1)];
    assert_eq!(seen, expected.map(|(data, count)| (data.to_owned(), count)));
    assert_eq!(reader.receive_for(1, S(1)).await.unwrap().len(), 0);
}

/// What is held is ours for longer than a lease: the emulator sends none of it again.
#[tokio::test]
async fn what_is_held_is_extended_over_more_than_a_lease() {
    let emulator = PubsubEmulator::start().await.unwrap();
    channels(&emulator).await;
    let reader = Reader::new(&emulator.endpoint(), |spec| spec.ordered = true).await;
    publish(&emulator, "k", &["a", "b"]).await;
    publish(&emulator, "l", &["x"]).await;
    let first = reader.one().await;
    until_held(&reader, 2).await;
    reader.ack(vec![first]).await;
    tokio::time::sleep(S(44)).await;
    assert_eq!(reader.source.held(), 2, "the stream's lease is 40 s");
    let rest = reader.receive(10).await.unwrap();
    assert!(rest.iter().all(|one| one.counted.count().0 == 0), "{rest:?}");
    assert!(rest.iter().all(|one| one.lease.left(reader.clock.now()) >= S(10)));
    let mut handled = texts(&rest);
    handled.sort();
    assert_eq!(handled, ["b", "x"]);
    reader.ack(rest).await;
}

/// FR-31: the emulator is killed while a message is handled, and comes back with nothing.
#[tokio::test]
async fn a_restart_is_told_and_survived() {
    let mut emulator = PubsubEmulator::start().await.unwrap();
    channels(&emulator).await;
    let reader = Reader::new(&emulator.endpoint(), |spec| spec.ordered = true).await;
    publish(&emulator, "k", &["a", "b"]).await;
    let head = reader.one().await;
    until_held(&reader, 1).await;
    emulator.kill();
    let end = Instant::now() + S(10);
    while reader.receive_for(1, S(0)).await.is_ok() {
        assert!(Instant::now() < end, "a broker that is gone is told");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    emulator.restart().await.unwrap();
    channels(&emulator).await;
    publish(&emulator, "l", &["x"]).await;
    reader.ack(vec![head]).await;
    let mut handled = Vec::new();
    while handled.len() < 2 {
        let next = reader.one().await;
        handled.push(text(&next));
        reader.ack(vec![next]).await;
    }
    handled.sort();
    assert_eq!(handled, ["b", "x"], "what was held is still handled; what is new too");
}
