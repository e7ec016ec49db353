//! Each way in which a subscription can differ, alone and all at once.

use std::time::Duration;

use google_cloud_pubsub::model::{
    DeadLetterPolicy, PushConfig, RetryPolicy as Backoff, Subscription,
};
use pumphouse_pubsub::{Mode, Provision, RetryPolicy, SourceSpec};

use crate::common::{
    Foreign, assert_each, connect, differences, emulator, native, spec, subscription, topic, unique,
};

/// A subscription of a topic of its name, both made by another program.
async fn plain(foreign: &Foreign, name: &str) -> Subscription {
    foreign.make_topic(name).await;
    Subscription::new().set_name(subscription(name)).set_topic(topic(name))
}

fn asked(name: &str) -> SourceSpec {
    SourceSpec { lease: Duration::from_secs(10), ..spec(name, Provision::Validate) }
}

#[tokio::test]
async fn validate_names_what_is_missing_and_makes_nothing() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (name, dead) = (unique("absent"), unique("absent-dead"));
    let wanted = SourceSpec { native: native(5, &dead), ..asked(&name) };
    let found = differences(&pubsub, wanted).await;
    let texts = [topic(&name), format!("dead-letter topic {}", topic(&dead)), subscription(&name)];
    assert_each(&found, &texts.each_ref().map(String::as_str));
    assert!(found.iter().all(|it| it.contains("does not exist: make it")), "{found:?}");
    assert!(foreign.read(&name).await.is_none());
    assert!(!foreign.has_topic(&name).await && !foreign.has_topic(&dead).await);
}

#[tokio::test]
async fn what_fits_is_taken() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let name = unique("fits");
    // A filter is no difference, and neither is a deadline longer than needed.
    let made = plain(&foreign, &name).await;
    foreign.make(made.set_filter("attributes.a = \"b\"").set_ack_deadline_seconds(600)).await;
    for mode in [Mode::Pull, Mode::Stream] {
        pubsub.source(SourceSpec { mode, ..asked(&name) }).await.expect("it fits");
        let without_topic = SourceSpec { mode, topic: None, ..asked(&name) };
        pubsub.source(without_topic).await.expect("it fits");
    }
}

#[tokio::test]
async fn each_difference_is_named_alone() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (dead, other) = (unique("each-dead"), unique("each-other"));
    let kept = SourceSpec { native: native(6, &dead), ..spec(&unique("each"), Provision::Create) };
    pubsub.source(kept).await.expect("a source");
    pubsub.source(spec(&other, Provision::Create)).await.expect("a topic with a subscription");
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic(&dead));
    let policy = policy.set_max_delivery_attempts(6);
    let backoff = Backoff::new().set_minimum_backoff(google_cloud_wkt::Duration::clamp(3, 0));
    let push = PushConfig::new().set_push_endpoint("https://example.com/secret-path");
    let retry = |min, max| {
        let (min, max) = (Duration::from_secs(min), Duration::from_secs(max));
        Some(RetryPolicy { min, max })
    };

    type Make = Box<dyn Fn(Subscription) -> Subscription>;
    type Ask = Box<dyn Fn(SourceSpec) -> SourceSpec>;
    let same = || -> Make { Box::new(|made| made) };
    let (other_topic, with_policy, with_backoff) = (topic(&other), policy.clone(), backoff.clone());
    let (native_7, native_other) = (native(7, &dead), native(6, &other));
    let cases: Vec<(Make, Ask, &str)> = vec![
        (Box::new(move |it| it.set_topic(other_topic.clone())), Box::new(|it| it), "its topic is"),
        (
            Box::new(|it| it.set_enable_message_ordering(true)),
            Box::new(|it| it),
            "message ordering is on where the configuration says off: set ordered = true",
        ),
        (
            same(),
            Box::new(|it| SourceSpec { ordered: true, ..it }),
            "message ordering is off where the configuration says on: set ordered = false",
        ),
        (
            same(),
            Box::new(|it| SourceSpec {
                mode: Mode::Pull,
                lease: Duration::from_millis(10_001),
                ..it
            }),
            "its acknowledgement deadline is 10 s where the handler needs 11 s",
        ),
        (
            same(),
            Box::new(move |it| SourceSpec { native: native_7.clone(), ..it }),
            "it has no dead-letter policy",
        ),
        (
            Box::new(move |it| it.set_dead_letter_policy(with_policy.clone())),
            Box::new(move |it| SourceSpec { native: native_other.clone(), ..it }),
            "dead_letter_topic is",
        ),
        (
            same(),
            Box::new(move |it| SourceSpec { retry: retry(10, 600), ..it }),
            "it has no retry policy",
        ),
        (
            Box::new(move |it| it.set_retry_policy(with_backoff.clone())),
            Box::new(move |it| SourceSpec { retry: retry(3, 599), ..it }),
            "its retry policy is 3s to 600s where the configuration says 3s to 599s",
        ),
        (
            Box::new(move |it| it.set_push_config(push.clone())),
            Box::new(|it| it),
            "pushes to an endpoint",
        ),
    ];
    for (make, ask, text) in cases {
        let name = unique("each");
        let made = make(plain(&foreign, &name).await);
        foreign.make(made).await;
        let found = differences(&pubsub, ask(asked(&name))).await;
        assert_each(&found, &[text]);
        assert!(!found[0].contains("secret-path"), "an endpoint may hold a secret: {found:?}");
    }
    // A stream has a deadline of its own.
    let name = unique("each");
    let made = plain(&foreign, &name).await;
    foreign.make(made).await;
    let streamed = SourceSpec { lease: Duration::from_secs(600), ..asked(&name) };
    pubsub.source(streamed).await.expect("it fits");
}

#[tokio::test]
async fn every_difference_is_named_at_once() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (name, dead) = (unique("all"), unique("all-dead"));
    foreign.make_topic(&dead).await;
    let made = plain(&foreign, &name).await.set_enable_message_ordering(true);
    foreign.make(made).await;
    let wanted = SourceSpec {
        mode: Mode::Pull,
        topic: Some(dead.clone()),
        lease: Duration::from_secs(60),
        native: native(5, &unique("all-absent")),
        retry: Some(RetryPolicy { min: Duration::ZERO, max: Duration::from_secs(1) }),
        ..asked(&name)
    };
    let texts = [
        "its topic is",
        "message ordering is on",
        "is 10 s where the handler needs 60 s",
        "no dead-letter policy",
        "no retry policy",
        "dead-letter topic",
    ];
    assert_each(&differences(&pubsub, wanted).await, &texts);
}

/// What the service calls `_deleted-topic_`, in both modes that ask.
#[tokio::test]
async fn a_subscription_whose_topic_was_deleted_is_refused() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let name = unique("gone");
    let made = plain(&foreign, &name).await;
    foreign.make(made).await;
    foreign.topics.delete_topic().set_topic(topic(&name)).send().await.expect("deleted");
    let without_topic = SourceSpec { topic: None, ..asked(&name) };
    assert_each(&differences(&pubsub, without_topic).await, &["its topic was deleted"]);
    let found = differences(&pubsub, asked(&name)).await;
    assert_each(&found, &["its topic was deleted", "does not exist"]);
    let made = SourceSpec { provision: Provision::Create, ..asked(&name) };
    assert_eq!(differences(&pubsub, made).await, found);
    assert!(!foreign.has_topic(&name).await, "a new topic would not feed it");
}

/// A dead-letter topic that keeps nothing loses what the service forwards.
#[tokio::test]
async fn c_15_a_dead_letter_topic_that_keeps_nothing_is_refused() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (name, dead) = (unique("loses"), unique("loses-dead"));
    foreign.make_topic(&dead).await;
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic(&dead));
    let policy = policy.set_max_delivery_attempts(5);
    let made = plain(&foreign, &name).await.set_dead_letter_policy(policy);
    foreign.make(made).await;
    let wanted = SourceSpec { native: native(5, &dead), ..asked(&name) };
    assert_each(&differences(&pubsub, wanted.clone()).await, &["would be lost"]);
    let create = SourceSpec { provision: Provision::Create, ..wanted.clone() };
    pubsub.source(create).await.expect("the missing subscription is made");
    pubsub.source(wanted).await.expect("it fits");
}
