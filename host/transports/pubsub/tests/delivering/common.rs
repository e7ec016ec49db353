//! The emulator, connections, and what other programs do to a topic.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as api;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::publisher_client::PublisherClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::subscriber_client::SubscriberClient;
use pumphouse_contract::ports::{Action, Ask, Settlement, Sink, Source, Unsettled};
use pumphouse_contract::{Count, Delivery, Outgoing};
use pumphouse_pubsub::{
    Mode, NativeDeadLetter, Provision, Pubsub, PubsubSettings, SinkSpec, SourceSpec,
};
use pumphouse_pump::SystemClock;
use pumphouse_test_brokers::PubsubEmulator;
pub(crate) use pumphouse_test_brokers::unique;
use tokio::sync::OnceCell;
use tonic::transport::Channel;

pub(crate) const PROJECT: &str = "works";

/// How long a message that is there may take to come.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// The shortest lease that a subscription can have.
pub(crate) const SHORT: Duration = Duration::from_secs(10);

/// The endpoint of the one emulator of this test binary.
pub(crate) async fn emulator() -> String {
    static SERVER: OnceCell<PubsubEmulator> = OnceCell::const_new();
    let start = || async { PubsubEmulator::start().await.expect("the emulator starts") };
    SERVER.get_or_init(start).await.endpoint()
}

pub(crate) fn settings(endpoint: &str) -> PubsubSettings {
    let mut settings = PubsubSettings::new(Arc::new(SystemClock::new()));
    settings.project = Some(PROJECT.into());
    settings.endpoint = Some(endpoint.to_owned());
    // The emulator shares a small machine with everything else that is tested.
    settings.timeouts.admin = Duration::from_secs(30);
    settings
}

pub(crate) async fn connect(endpoint: &str) -> Pubsub {
    Pubsub::connect(settings(endpoint)).await.expect("a connection")
}

/// A subscription that is pulled, of a topic of the same name.
pub(crate) fn spec(name: &str) -> SourceSpec {
    SourceSpec {
        topic: Some(name.into()),
        mode: Mode::Pull,
        lease: SHORT,
        ..SourceSpec::new(name, Provision::Create)
    }
}

/// With a dead-letter policy that is never reached, so that deliveries are counted.
pub(crate) fn counted(name: &str) -> SourceSpec {
    let native = NativeDeadLetter {
        max_delivery_attempts: 100,
        dead_letter: format!("{name}-native"),
        publisher_member: Some("serviceAccount:one@example.com".into()),
        subscriber_member: Some("serviceAccount:two@example.com".into()),
    };
    SourceSpec { native: Some(native), ..spec(name) }
}

pub(crate) async fn open(pubsub: &Pubsub, spec: SourceSpec) -> Arc<dyn Source> {
    pubsub.source(spec).await.expect("a source")
}

pub(crate) async fn sink(pubsub: &Pubsub, topic: &str) -> Arc<dyn Sink> {
    pubsub.sink(SinkSpec::new(topic, Provision::Create)).await.expect("a sink")
}

pub(crate) fn outgoing(body: &str) -> Outgoing {
    Outgoing { body: body.as_bytes().to_vec().into(), ..Outgoing::default() }
}

pub(crate) fn ask(max: usize, wait: Duration) -> Ask {
    Ask { max, wait, lease: SHORT }
}

/// The next message, which must come soon. A wait may end early, with nothing.
pub(crate) async fn one(source: &dyn Source) -> Delivery {
    let until = Instant::now() + 2 * SOON;
    while Instant::now() < until {
        if let Some(got) = source.receive(ask(1, SOON)).await.expect("a receive").pop() {
            return got;
        }
    }
    panic!("no message came");
}

/// Whether nothing comes within a second.
pub(crate) async fn is_empty(source: &dyn Source) -> bool {
    source.receive(ask(1, Duration::from_secs(1))).await.expect("a receive").is_empty()
}

pub(crate) async fn settle(
    source: &dyn Source,
    delivery: &Delivery,
    action: Action,
) -> Result<(), Unsettled> {
    let settlement = Settlement { receipt: delivery.receipt.clone(), action };
    source.settle(vec![settlement]).await.pop().expect("an answer")
}

pub(crate) async fn ack(source: &dyn Source, delivery: &Delivery) {
    settle(source, delivery, Action::Ack).await.expect("an acknowledgement");
}

pub(crate) async fn release(source: &dyn Source, delivery: &Delivery, after: Duration) {
    settle(source, delivery, Action::Release(after)).await.expect("a release");
}

pub(crate) fn count(delivery: &Delivery) -> Count {
    delivery.counted.count()
}

pub(crate) fn topic(id: &str) -> String {
    format!("projects/{PROJECT}/topics/{id}")
}

pub(crate) fn subscription(id: &str) -> String {
    format!("projects/{PROJECT}/subscriptions/{id}")
}

/// Another program, which knows nothing of us.
pub(crate) struct Foreign {
    pub(crate) publisher: PublisherClient<Channel>,
    subscriber: SubscriberClient<Channel>,
}

impl Foreign {
    pub(crate) async fn connect(endpoint: &str) -> Self {
        let channel = Channel::from_shared(endpoint.to_owned()).expect("an address");
        let channel = channel.connect().await.expect("a connection");
        Self {
            publisher: PublisherClient::new(channel.clone()),
            subscriber: SubscriberClient::new(channel),
        }
    }

    pub(crate) async fn publish(&mut self, id: &str, message: api::PubsubMessage) -> String {
        let request = api::PublishRequest { topic: topic(id), messages: vec![message] };
        let answer = self.publisher.publish(request).await.expect("published");
        answer.into_inner().message_ids.pop().expect("an id")
    }

    pub(crate) async fn pull(&mut self, id: &str) -> api::PubsubMessage {
        let request = api::PullRequest {
            subscription: subscription(id),
            max_messages: 1,
            ..Default::default()
        };
        let answer = self.subscriber.pull(request).await.expect("a pull").into_inner();
        let received = answer.received_messages.into_iter().next().expect("a message");
        received.message.expect("with its content")
    }
}
