//! The emulator, connections, and what other programs do to a subscription.

use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::Subscription;
use pumphouse_pubsub::{
    NativeDeadLetter, Provision, ProvisionError, Pubsub, PubsubSettings, SourceSpec,
};
use pumphouse_pump::SystemClock;
use pumphouse_test_brokers::PubsubEmulator;
pub(crate) use pumphouse_test_brokers::unique;
use tokio::sync::OnceCell;

use crate::logs;

pub(crate) const PROJECT: &str = "works";

/// Nobody listens there.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";

/// The endpoint of the one emulator of this test binary.
pub(crate) async fn emulator() -> String {
    static SERVER: OnceCell<PubsubEmulator> = OnceCell::const_new();
    let start = || async { PubsubEmulator::start().await.expect("the emulator starts") };
    SERVER.get_or_init(start).await.endpoint()
}

pub(crate) fn settings(endpoint: &str) -> PubsubSettings {
    // Before anything is logged.
    logs::listen();
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

/// A subscription of a topic of the same name.
pub(crate) fn spec(name: &str, provision: Provision) -> SourceSpec {
    SourceSpec { topic: Some(name.into()), ..SourceSpec::new(name, provision) }
}

/// A policy whose members are named, so that nobody asks for the project.
pub(crate) fn native(attempts: u32, dead_letter: &str) -> Option<NativeDeadLetter> {
    Some(NativeDeadLetter {
        max_delivery_attempts: attempts,
        dead_letter: dead_letter.into(),
        publisher_member: Some("serviceAccount:one@example.com".into()),
        subscriber_member: Some("serviceAccount:two@example.com".into()),
    })
}

pub(crate) fn topic(id: &str) -> String {
    format!("projects/{PROJECT}/topics/{id}")
}

pub(crate) fn subscription(id: &str) -> String {
    format!("projects/{PROJECT}/subscriptions/{id}")
}

/// What a source differs in, which it must.
pub(crate) async fn differences(pubsub: &Pubsub, spec: SourceSpec) -> Vec<String> {
    let error = pubsub.source(spec).await.err().expect("it differs");
    let ProvisionError::Differs { differences, .. } = error else { panic!("{error}") };
    differences
}

/// Whether there is one difference for each of these texts, in their order.
pub(crate) fn assert_each(differences: &[String], texts: &[&str]) {
    let fits = differences.len() == texts.len()
        && differences.iter().zip(texts).all(|(difference, text)| difference.contains(text));
    assert!(fits, "{differences:#?} where {texts:#?} was expected");
}

/// Another program.
pub(crate) struct Foreign {
    pub(crate) topics: TopicAdmin,
    pub(crate) subscriptions: SubscriptionAdmin,
}

impl Foreign {
    pub(crate) async fn connect(endpoint: &str) -> Self {
        // Google's library needs a cryptography, which our connection gives the process.
        connect(endpoint).await;
        let nobody = || anonymous::Builder::new().build();
        let topics = TopicAdmin::builder().with_endpoint(endpoint).with_credentials(nobody());
        let subscriptions =
            SubscriptionAdmin::builder().with_endpoint(endpoint).with_credentials(nobody());
        Self {
            topics: topics.build().await.expect("a client"),
            subscriptions: subscriptions.build().await.expect("a client"),
        }
    }

    pub(crate) async fn make_topic(&self, id: &str) {
        self.topics.create_topic().set_name(topic(id)).send().await.expect("made");
    }

    pub(crate) async fn make(&self, wanted: Subscription) {
        let call = self.subscriptions.create_subscription().with_request(wanted);
        call.send().await.expect("made");
    }

    pub(crate) async fn read(&self, id: &str) -> Option<Subscription> {
        let call = self.subscriptions.get_subscription().set_subscription(subscription(id));
        call.send().await.ok()
    }

    pub(crate) async fn has_topic(&self, id: &str) -> bool {
        self.topics.get_topic().set_topic(topic(id)).send().await.is_ok()
    }
}

/// A duration of the API in seconds.
pub(crate) fn seconds(duration: Option<google_cloud_wkt::Duration>) -> Option<u64> {
    duration.and_then(|it| Duration::try_from(it).ok()).map(|it| it.as_secs())
}
