//! An emulator on this machine, and subscriptions with messages in them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::publisher_client::PublisherClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::subscriber_client::SubscriberClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    DeleteSubscriptionRequest, DeleteTopicRequest, PublishRequest, PubsubMessage, Subscription,
    Topic,
};
use pumphouse_contract::Clock;
use pumphouse_pubsub::PubsubSettings;
use pumphouse_test_brokers::PubsubEmulator;
use tonic::transport::{Channel, Endpoint};

use crate::message;

const PROJECT: &str = "bench";
const PUBLISHERS: usize = 4;
const MOST_PUBLISHED: usize = 500;

pub(super) struct Server {
    emulator: PubsubEmulator,
    publisher: PublisherClient<Channel>,
    subscriber: SubscriberClient<Channel>,
}

/// A topic and its subscription, by their full names.
pub(super) struct Filled {
    topic: String,
    pub(super) subscription: String,
}

impl Server {
    pub(super) async fn start() -> Result<Self> {
        let emulator = PubsubEmulator::start_as_shipped().await?;
        let channel = connect(&emulator.endpoint()).await?;
        let publisher = PublisherClient::new(channel.clone());
        Ok(Self { emulator, publisher, subscriber: SubscriberClient::new(channel) })
    }

    pub(super) fn endpoint(&self) -> String {
        self.emulator.endpoint()
    }

    /// How the product reaches it.
    pub(super) fn settings(&self, clock: Arc<dyn Clock>) -> PubsubSettings {
        PubsubSettings {
            project: Some(PROJECT.to_owned()),
            endpoint: Some(self.endpoint()),
            ..PubsubSettings::new(clock)
        }
    }

    /// A new topic with a new subscription with so many messages.
    pub(super) async fn filled(
        &self,
        name: &str,
        lease: Duration,
        messages: usize,
    ) -> Result<Filled> {
        let filled = Filled {
            topic: format!("projects/{PROJECT}/topics/{name}"),
            subscription: format!("projects/{PROJECT}/subscriptions/{name}"),
        };
        let topic = Topic { name: filled.topic.clone(), ..Topic::default() };
        self.publisher.clone().create_topic(topic).await?;
        let subscription = Subscription {
            name: filled.subscription.clone(),
            topic: filled.topic.clone(),
            ack_deadline_seconds: i32::try_from(lease.as_secs())?,
            ..Subscription::default()
        };
        self.subscriber.clone().create_subscription(subscription).await?;
        let batches = (0..messages).step_by(MOST_PUBLISHED);
        let batches = batches.map(|from| MOST_PUBLISHED.min(messages - from));
        let sent = stream::iter(batches).map(|many| self.publish(&filled.topic, many));
        sent.buffer_unordered(PUBLISHERS).try_for_each(|()| async { Ok(()) }).await?;
        Ok(filled)
    }

    async fn publish(&self, topic: &str, many: usize) -> Result<()> {
        let (name, value) = message::HEADER;
        let message = PubsubMessage {
            data: message::text().into(),
            attributes: [(name.to_owned(), value.to_owned())].into(),
            ..PubsubMessage::default()
        };
        let messages = vec![message; many];
        let request = PublishRequest { topic: topic.to_owned(), messages };
        self.publisher.clone().publish(request).await?;
        Ok(())
    }

    /// What it keeps slows it down.
    pub(super) async fn delete(&self, filled: Filled) -> Result<()> {
        let Filled { topic, subscription } = filled;
        let request = DeleteSubscriptionRequest { subscription };
        self.subscriber.clone().delete_subscription(request).await?;
        self.publisher.clone().delete_topic(DeleteTopicRequest { topic }).await?;
        Ok(())
    }
}

/// A connection as the product's are.
pub(super) async fn connect(endpoint: &str) -> Result<Channel> {
    Ok(Endpoint::from_shared(endpoint.to_owned())?.tcp_nodelay(true).connect().await?)
}
