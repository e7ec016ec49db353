//! Topics to publish to: without a subscription, what is published there is lost.

use google_cloud_pubsub::model::Subscription;
use pumphouse_pubsub::{Provision, ProvisionError, SinkSpec};

use crate::common::{Foreign, connect, emulator, seconds, subscription, topic, unique};

fn refused(answer: Result<(), ProvisionError>, text: &str) {
    let error = answer.expect_err("it differs");
    assert!(matches!(error, ProvisionError::Differs { .. }), "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[tokio::test]
async fn create_makes_a_topic_that_keeps_what_is_published() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    for named in [None, Some(unique("rejected-kept"))] {
        let id = unique("rejected");
        let spec =
            SinkSpec { subscription: named.clone(), ..SinkSpec::new(&id, Provision::Create) };
        for _ in 0..2 {
            pubsub.sink(spec.clone()).await.expect("a sink");
        }
        let kept = foreign.read(named.as_deref().unwrap_or(&id)).await.expect("it is kept");
        assert_eq!(kept.topic, topic(&id));
        // The emulator takes at most seven days, where Google takes 31.
        assert_eq!(seconds(kept.message_retention_duration), Some(7 * 24 * 60 * 60));
        let validated = SinkSpec { provision: Provision::Validate, ..spec };
        pubsub.sink(validated).await.expect("a sink");
    }
}

#[tokio::test]
async fn one_subscription_is_enough_whatever_its_name() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (id, theirs) = (unique("rejected"), unique("theirs"));
    foreign.make_topic(&id).await;
    let validated = SinkSpec::new(&id, Provision::Validate);
    refused(pubsub.sink(validated.clone()).await.map(drop), "would be lost");
    foreign.make(Subscription::new().set_name(subscription(&theirs)).set_topic(topic(&id))).await;
    pubsub.sink(validated).await.expect("a sink");
    pubsub.sink(SinkSpec::new(&id, Provision::Create)).await.expect("a sink");
    assert!(foreign.read(&id).await.is_none(), "none is made beside one that is there");
}

#[tokio::test]
async fn validate_refuses_a_topic_that_is_missing_and_makes_none() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let id = unique("absent");
    let answer = pubsub.sink(SinkSpec::new(&id, Provision::Validate)).await;
    refused(answer.map(drop), "does not exist");
    assert!(!foreign.has_topic(&id).await);
}

#[tokio::test]
async fn a_name_that_another_topic_has_is_refused() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (id, other) = (unique("rejected"), unique("other"));
    foreign.make_topic(&other).await;
    let theirs = Subscription::new().set_name(subscription(&id)).set_topic(topic(&other));
    foreign.make(theirs).await;
    let answer = pubsub.sink(SinkSpec::new(&id, Provision::Create)).await;
    refused(answer.map(drop), "belongs to topic");
}
