//! What is made, what is left alone, and what is not even called.

use std::time::{Duration, Instant};

use pumphouse_contract::ports::LeaseSetting;
use pumphouse_pubsub::{
    Mode, Provision, ProvisionError, Pubsub, RetryPolicy, SinkSpec, SourceSpec,
};
use tokio::net::TcpListener;

use crate::common::{
    Foreign, NOWHERE, assert_each, connect, differences, emulator, native, seconds, settings, spec,
    subscription, topic, unique,
};

const RETRY: RetryPolicy =
    RetryPolicy { min: Duration::from_secs(2), max: Duration::from_secs(60) };

#[tokio::test]
async fn create_makes_everything_as_it_is_configured() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (name, dead) = (unique("orders"), unique("orders-dead"));
    let wanted = SourceSpec {
        mode: Mode::Pull,
        ordered: true,
        lease: Duration::from_millis(42_500),
        native: native(7, &dead),
        retry: Some(RETRY),
        ..spec(&name, Provision::Create)
    };
    let source = pubsub.source(wanted.clone()).await.expect("a source");
    assert!(source.capabilities().count_advances, "C-8: there is a policy");
    let made = foreign.read(&name).await.expect("made");
    assert_eq!(made.topic, topic(&name));
    assert_eq!(made.ack_deadline_seconds, 43, "rounded up");
    assert!(made.enable_message_ordering);
    let policy = made.dead_letter_policy.expect("a policy");
    assert_eq!((policy.dead_letter_topic, policy.max_delivery_attempts), (topic(&dead), 7));
    let retry = made.retry_policy.expect("a retry policy");
    assert_eq!(seconds(retry.minimum_backoff), Some(2));
    assert_eq!(seconds(retry.maximum_backoff), Some(60));
    let kept = foreign.read(&dead).await.expect("what is forwarded is kept");
    assert_eq!(kept.topic, topic(&dead));
    for provision in [Provision::Validate, Provision::Create, Provision::Assume] {
        let again = SourceSpec { provision, ..wanted.clone() };
        let again = pubsub.source(again).await.unwrap_or_else(|it| panic!("{provision:?}: {it}"));
        assert!(again.capabilities().count_advances);
    }
}

/// F-2, F-3, F-7: what the subscription itself says.
#[tokio::test]
async fn f_2_the_facts_are_those_of_the_subscription() {
    let endpoint = emulator().await;
    let pubsub = connect(&endpoint).await;
    let (name, dead) = (unique("facts"), unique("facts-dead"));
    let wanted = SourceSpec {
        ordered: true,
        lease: Duration::from_secs(30),
        native: native(9, &dead),
        ..spec(&name, Provision::Create)
    };
    pubsub.source(wanted.clone()).await.expect("a source");
    let facts = pubsub.facts(&SourceSpec::new(&name, Provision::Assume)).await.expect("facts");
    assert_eq!(facts.native_limit, Some(9));
    assert_eq!(facts.native_dead_letter, Some(topic(&dead)));
    assert_eq!(facts.retention, Some(Duration::from_secs(7 * 24 * 60 * 60)));
    assert_eq!(facts.ack_deadline, Duration::from_secs(30));
    assert!(facts.ordered && !facts.exactly_once);

    let plain = unique("facts");
    let source = pubsub.source(spec(&plain, Provision::Create)).await.expect("a source");
    assert!(!source.capabilities().count_advances, "F-3: nothing counts without a policy");
    let facts = pubsub.facts(&spec(&plain, Provision::Assume)).await.expect("facts");
    assert_eq!((facts.native_limit, facts.native_dead_letter, facts.ordered), (None, None, false));
    let absent = pubsub.facts(&spec(&unique("absent"), Provision::Assume)).await;
    let error = absent.expect_err("there is none");
    assert!(error.to_string().contains("does not exist"), "{error}");
}

/// F-2 speaks of a policy that is found, whoever made it.
#[tokio::test]
async fn f_2_a_policy_that_is_found_counts_though_none_is_configured() {
    let endpoint = emulator().await;
    let pubsub = connect(&endpoint).await;
    let (name, dead) = (unique("found"), unique("found-dead"));
    let made = SourceSpec { native: native(5, &dead), ..spec(&name, Provision::Create) };
    pubsub.source(made).await.expect("a source");
    for provision in [Provision::Create, Provision::Validate] {
        let source = pubsub.source(spec(&name, provision)).await.expect("a source");
        assert!(source.capabilities().count_advances, "{provision:?}");
    }
    let assumed = pubsub.source(spec(&name, Provision::Assume)).await.expect("a source");
    assert!(!assumed.capabilities().count_advances, "nothing was asked, and none is configured");
}

#[tokio::test]
async fn c_15_create_never_edits_what_it_finds() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let (name, dead, other) = (unique("kept"), unique("kept-dead"), unique("kept-dead"));
    let made = SourceSpec { native: native(5, &dead), ..spec(&name, Provision::Create) };
    pubsub.source(made.clone()).await.expect("a source");
    let before = foreign.read(&name).await;
    let asked = SourceSpec {
        native: native(8, &other),
        ordered: true,
        retry: Some(RETRY),
        mode: Mode::Pull,
        lease: Duration::from_secs(90),
        ..made.clone()
    };
    let found = differences(&pubsub, asked).await;
    let texts = [
        "ordering is off",
        "is 60 s where",
        "max_delivery_attempts is 5 and not 8",
        "no retry policy",
        "dead-letter topic",
    ];
    assert_each(&found, &texts);
    assert!(found[2].contains(&topic(&dead)) && found[2].contains(&topic(&other)), "{found:?}");
    assert!(!foreign.has_topic(&other).await, "nothing is made for what must be put right first");
    // Without demands of its own, any policy is fine; and a policy is not added where there is none.
    pubsub.source(spec(&name, Provision::Create)).await.expect("a source");
    assert_eq!(foreign.read(&name).await, before);
    let plain = unique("kept");
    pubsub.source(spec(&plain, Provision::Create)).await.expect("a source");
    let asked = SourceSpec { native: native(5, &dead), ..spec(&plain, Provision::Create) };
    assert_each(&differences(&pubsub, asked).await, &["it has no dead-letter policy"]);
    assert!(foreign.read(&plain).await.is_some_and(|it| it.dead_letter_policy.is_none()));
}

/// A host that was slower looks again.
#[tokio::test]
async fn hosts_that_make_the_same_at_once_both_have_it() {
    let endpoint = emulator().await;
    for _ in 0..10 {
        let (name, dead) = (unique("raced"), unique("raced-dead"));
        let wanted = SourceSpec { native: native(5, &dead), ..spec(&name, Provision::Create) };
        let host = || async {
            let pubsub = connect(&endpoint).await;
            pubsub.source(wanted.clone()).await.map(drop)?;
            pubsub.sink(SinkSpec::new(&dead, Provision::Create)).await.map(drop)
        };
        let (one, two, three) = tokio::join!(host(), host(), host());
        assert_eq!((one, two, three), (Ok(()), Ok(()), Ok(())));
    }
}

#[tokio::test]
async fn assume_calls_nothing() {
    let pubsub = connect(NOWHERE).await;
    for mode in [Mode::Pull, Mode::Stream] {
        let assumed =
            SourceSpec { mode, native: native(5, "dead"), ..spec("orders", Provision::Assume) };
        let source = pubsub.source(assumed).await.expect("nobody is asked");
        assert!(source.capabilities().count_advances, "as the configuration says");
        let setting = source.capabilities().lease_setting;
        assert_eq!(setting == LeaseSetting::OnSource, mode == Mode::Pull);
    }
    pubsub.sink(SinkSpec::new("dead", Provision::Assume)).await.expect("nobody is asked");
}

/// A broker that is away is told apart from a configuration that is wrong, and waited for within a bound.
#[tokio::test]
async fn a_broker_that_is_away_or_silent_is_retryable_within_the_bound() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = format!("http://{}", silent.local_addr().expect("an address"));
    let begin = Instant::now();
    for endpoint in [NOWHERE, &silent] {
        let mut settings = settings(endpoint);
        settings.timeouts.admin = Duration::from_millis(300);
        let pubsub = Pubsub::connect(settings).await.expect("a connection");
        for provision in [Provision::Create, Provision::Validate] {
            let error = pubsub.source(spec("orders", provision)).await.err().expect("away");
            assert!(error.is_retryable(), "{error}");
            let error = pubsub.sink(SinkSpec::new("orders", provision)).await.err().expect("away");
            assert!(error.is_retryable(), "{error}");
        }
        let error = pubsub.facts(&spec("orders", Provision::Assume)).await.expect_err("away");
        assert!(error.is_retryable(), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(15));
}

/// Everything that can't be is said at once, and nobody is called for it.
#[tokio::test]
async fn what_cannot_be_is_said_at_once_without_a_call() {
    let pubsub = connect(NOWHERE).await;
    let problems = |spec: SourceSpec| async {
        let error = pubsub.source(spec).await.err().expect("it can't be");
        let ProvisionError::Invalid { problems, .. } = error else { panic!("{error}") };
        problems
    };
    let mut wrong = SourceSpec::new("no name", Provision::Create);
    wrong.native = native(4, "googled");
    wrong.retry = Some(RetryPolicy { min: Duration::from_secs(9), max: Duration::from_secs(601) });
    let found = problems(wrong.clone()).await;
    assert_each(&found, &["no name is no name", "without a topic", "googled", "5 to 100", "601s"]);
    for wrong in ["ab", "9ine", "projects/p/topics/orders", "projects/p/subscriptions/", "a/b"] {
        let found = problems(SourceSpec::new(wrong, Provision::Assume)).await;
        assert_each(&found, &["is no name"]);
    }
    let circle = SourceSpec {
        native: native(5, &topic("orders")),
        retry: Some(RetryPolicy { min: RETRY.max, max: RETRY.min }),
        ..spec("orders", Provision::Validate)
    };
    assert_each(&problems(circle).await, &["its own topic", "min up to max"]);
    let error = pubsub.sink(SinkSpec::new("é-accented", Provision::Create)).await.err();
    assert!(matches!(error, Some(ProvisionError::Invalid { .. })), "{error:?}");
}

/// C-16: an empty member is a configuration error, in every mode.
#[tokio::test]
async fn c_16_an_empty_member_is_a_configuration_error() {
    let pubsub = connect(NOWHERE).await;
    for provision in [Provision::Create, Provision::Validate, Provision::Assume] {
        let mut wrong = SourceSpec { native: native(5, "dead"), ..spec("orders", provision) };
        let native = wrong.native.as_mut().expect("a policy");
        (native.publisher_member, native.subscriber_member) =
            (Some(String::new()), Some(" ".into()));
        let error = pubsub.source(wrong).await.err().expect("it can't be");
        let ProvisionError::Invalid { problems, .. } = error else { panic!("{error}") };
        assert_each(&problems, &["publisher_member is empty", "subscriber_member is empty"]);
    }
}

/// A full name reaches another project's resources.
#[tokio::test]
async fn full_names_are_taken_as_they_are() {
    let endpoint = emulator().await;
    let (pubsub, foreign) = (connect(&endpoint).await, Foreign::connect(&endpoint).await);
    let name = unique("named");
    let elsewhere = format!("projects/elsewhere/topics/{name}");
    let wanted = SourceSpec {
        topic: Some(elsewhere.clone()),
        ..SourceSpec::new(subscription(&name), Provision::Create)
    };
    pubsub.source(wanted).await.expect("a source");
    assert_eq!(foreign.read(&name).await.map(|it| it.topic), Some(elsewhere));
    assert!(!foreign.has_topic(&name).await);
}
