//! The calls that look at topics and subscriptions and make them.

use std::future::Future;
use std::time::Duration;

use google_cloud_gax::client_builder;
use google_cloud_gax::error::Error;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::{Subscription, Topic};
use tonic::Code;

use crate::calls::{Fault, Kind, of_library};
use crate::{ProvisionError, Pubsub};

/// Pages that are looked through for a topic's first subscription. A page may be empty though more follow.
const MOST_PAGES: usize = 100;

/// Calls on behalf of one resource, which errors name.
pub(crate) struct Admin {
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
    /// Of one call.
    limit: Duration,
    resource: String,
}

/// What came of making something.
pub(crate) enum Made<T> {
    New(T),
    /// Someone else was quicker.
    Already,
}

impl Admin {
    pub(crate) async fn new(pubsub: &Pubsub, resource: &str) -> Result<Self, ProvisionError> {
        let error = |error: client_builder::Error| ProvisionError::Refused {
            resource: resource.to_owned(),
            call: "making a client",
            text: error.to_string(),
        };
        // Whoever asks us to provision waits and asks again; the library would wait without an end.
        let topics = TopicAdmin::builder()
            .with_endpoint(&pubsub.endpoint)
            .with_credentials(pubsub.credentials.clone())
            .with_retry_policy(NeverRetry);
        let subscriptions = SubscriptionAdmin::builder()
            .with_endpoint(&pubsub.endpoint)
            .with_credentials(pubsub.credentials.clone())
            .with_retry_policy(NeverRetry);
        Ok(Self {
            topics: topics.build().await.map_err(error)?,
            subscriptions: subscriptions.build().await.map_err(error)?,
            limit: pubsub.timeouts.admin,
            resource: resource.to_owned(),
        })
    }

    /// The topic as it is; none where there is none.
    pub(crate) async fn topic(&self, name: &str) -> Result<Option<Topic>, ProvisionError> {
        let call = self.topics.get_topic().set_topic(name).send();
        self.found("GetTopic", self.bounded(call).await)
    }

    /// Makes a topic with nothing but its name.
    pub(crate) async fn create_topic(&self, name: &str) -> Result<Made<Topic>, ProvisionError> {
        let call = self.topics.create_topic().set_name(name).send();
        let made = self.made("CreateTopic", self.bounded(call).await)?;
        if matches!(made, Made::New(_)) {
            tracing::info!(topic = name, "topic made");
        }
        Ok(made)
    }

    /// Whether some subscription keeps what is published to a topic.
    pub(crate) async fn has_subscription(&self, topic: &str) -> Result<bool, ProvisionError> {
        let mut token = String::new();
        for _ in 0..MOST_PAGES {
            let call = self.topics.list_topic_subscriptions().set_topic(topic);
            let page = self.bounded(call.set_page_token(token).send()).await;
            let page = page.map_err(|fault| self.error("ListTopicSubscriptions", fault))?;
            if !page.subscriptions.is_empty() {
                return Ok(true);
            }
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        Ok(false)
    }

    /// The subscription as it is; none where there is none.
    pub(crate) async fn subscription(
        &self,
        name: &str,
    ) -> Result<Option<Subscription>, ProvisionError> {
        let call = self.subscriptions.get_subscription().set_subscription(name).send();
        self.found("GetSubscription", self.bounded(call).await)
    }

    /// Makes a subscription.
    pub(crate) async fn create_subscription(
        &self,
        wanted: Subscription,
    ) -> Result<Made<Subscription>, ProvisionError> {
        self.made(CREATE_SUBSCRIPTION, self.send_subscription(wanted).await)
    }

    /// Makes a subscription that keeps messages for as long as the service lets it: 31 days, and 7 days where
    /// that is too long for it, as for the emulator.
    pub(crate) async fn create_keeping(
        &self,
        wanted: Subscription,
        longest: Duration,
    ) -> Result<Made<Subscription>, ProvisionError> {
        let long = wanted.clone().set_message_retention_duration(wire(longest));
        let answer = match self.send_subscription(long).await {
            Err(fault) if fault.kind == Kind::Sender && !is_already(&fault) => {
                self.send_subscription(wanted).await
            }
            answer => answer,
        };
        self.made(CREATE_SUBSCRIPTION, answer)
    }

    async fn send_subscription(&self, wanted: Subscription) -> Result<Subscription, Fault> {
        let (name, topic) = (wanted.name.clone(), wanted.topic.clone());
        let call = self.subscriptions.create_subscription().with_request(wanted).send();
        let made = self.bounded(call).await?;
        tracing::info!(subscription = name, topic, "subscription made");
        Ok(made)
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        match tokio::time::timeout(self.limit, call).await {
            Ok(answer) => answer.map_err(|error| of_library(&error)),
            Err(_) => Err(Fault::unavailable(format!("no answer within {:?}", self.limit))),
        }
    }

    fn found<T>(
        &self,
        call: &'static str,
        answer: Result<T, Fault>,
    ) -> Result<Option<T>, ProvisionError> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.kind == Kind::Missing => Ok(None),
            Err(fault) => Err(self.error(call, fault)),
        }
    }

    fn made<T>(
        &self,
        call: &'static str,
        answer: Result<T, Fault>,
    ) -> Result<Made<T>, ProvisionError> {
        match answer {
            Ok(made) => Ok(Made::New(made)),
            Err(fault) if is_already(&fault) => Ok(Made::Already),
            Err(fault) => Err(self.error(call, fault)),
        }
    }

    fn error(&self, call: &'static str, fault: Fault) -> ProvisionError {
        ProvisionError::from_fault(&self.resource, call, fault)
    }
}

const CREATE_SUBSCRIPTION: &str = "CreateSubscription";

fn is_already(fault: &Fault) -> bool {
    fault.status.as_ref().is_some_and(|status| status.code() == Code::AlreadyExists)
}

/// A duration as the API takes it.
pub(crate) fn wire(duration: Duration) -> google_cloud_wkt::Duration {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or(0);
    google_cloud_wkt::Duration::clamp(seconds, nanos)
}

/// A duration that the API gave; none where it says nothing or less than nothing.
pub(crate) fn read(duration: Option<google_cloud_wkt::Duration>) -> Option<Duration> {
    duration.and_then(|it| Duration::try_from(it).ok())
}
