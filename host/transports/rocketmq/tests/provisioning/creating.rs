use std::time::{Duration, Instant};

use pumphouse_rocketmq::{Kind, Provision, ProvisionError, Rocketmq, SourceSpec};
use pumphouse_test_brokers::remoting::{RemotingProxy, code};
use pumphouse_test_brokers::{RocketMq, Setup};
use serde_json::json;

use crate::common::*;

/// FR-22: `create` makes topic and group on every broker, with the type, the queues and the order asked for.
#[tokio::test]
async fn fr_22_create_makes_topic_and_group_on_every_broker() {
    let server = server().await;
    let rocketmq = connect(&server.namesrv()).await;
    for (kind, wanted, orderly) in [(Kind::Normal, "NORMAL", false), (Kind::Fifo, "FIFO", true)] {
        let name = unique("made");
        rocketmq.source(spec(&name, kind, Provision::Create)).await.expect("made");
        for broker in server.brokers() {
            let found = topic(&broker, &name).await.expect("a topic");
            assert_eq!(found["attributes"]["message.type"], wanted);
            let queues = (&found["readQueueNums"], &found["writeQueueNums"], &found["perm"]);
            assert_eq!(queues, (&json!(3), &json!(3), &json!(6)));
            let found = group(&broker, &name).await.expect("a group");
            let group = (&found["consumeEnable"], &found["consumeMessageOrderly"]);
            assert_eq!(group, (&json!(true), &json!(orderly)));
        }
        // It fits as it was made, whoever looks.
        for provision in [Provision::Create, Provision::Validate] {
            rocketmq.source(spec(&name, kind, provision)).await.expect("it fits");
            rocketmq.sink(destination(&name, kind, provision)).await.expect("it fits");
        }
        let facts = rocketmq.facts(&spec(&name, kind, Provision::Assume)).await.expect("facts");
        assert_eq!((facts.retry_limit, facts.kind), (Some(17), Some(kind)));
    }
    rocketmq.close().await;
}

/// FR-22: what is there is not touched by `create`.
#[tokio::test]
async fn fr_22_create_edits_nothing() {
    let (server, name) = (server().await, unique("theirs"));
    let rocketmq = connect(&server.namesrv()).await;
    let [first, second] = &server.brokers()[..] else { panic!("two brokers") };
    // On one broker alone, with other queues, and a group with a maximum of its own.
    make_topic(first, &name, &[("readQueueNums", "7"), ("writeQueueNums", "5")]).await;
    make_group(first, &name, false, json!({ "retryMaxTimes": 3 })).await;
    wait_for_route(server, &name, 1).await;
    let before = (topic(first, &name).await, group(first, &name).await);
    let wanted = spec(&name, Kind::Normal, Provision::Create);
    rocketmq.source(wanted.clone()).await.expect("it fits");
    rocketmq.sink(destination(&name, Kind::Normal, Provision::Create)).await.expect("it fits");
    assert_eq!((topic(first, &name).await, group(first, &name).await), before);
    assert_eq!((topic(second, &name).await, group(second, &name).await), (None, None));
    let facts = rocketmq.facts(&wanted).await.expect("facts");
    assert_eq!((facts.retry_limit, facts.kind), (Some(4), None));
    // Nor where it differs, and then nothing else is made either.
    let other = SourceSpec { group: unique("other"), kind: Kind::Fifo, ..wanted };
    let found = differences(&rocketmq, other.clone()).await;
    assert_each(
        &found,
        &["broker-0: its message.type is NORMAL where the configuration says FIFO", "group"],
    );
    assert_eq!((topic(first, &name).await, group(first, &other.group).await), (before.0, None));
    rocketmq.close().await;
}

/// A broker that makes groups as soon as one asks makes none that `create` would have to edit.
#[tokio::test]
async fn fr_22_create_is_before_a_broker_that_makes_groups_by_itself() {
    let server = own(Setup::default().auto_create_groups().auto_create_topics()).await;
    let (rocketmq, name) = (connect(&server.namesrv()).await, unique("auto"));
    rocketmq.source(spec(&name, Kind::Fifo, Provision::Create)).await.expect("made");
    let found = group(&server.brokers()[0], &name).await.expect("a group");
    assert_eq!(found["consumeMessageOrderly"], true);
    rocketmq.close().await;
}

/// Two hosts that start at once make one topic.
#[tokio::test]
async fn fr_22_two_hosts_make_the_same_topic() {
    let (server, name) = (server().await, unique("both"));
    let (one, other) = (connect(&server.namesrv()).await, connect(&server.namesrv()).await);
    let wanted = spec(&name, Kind::Fifo, Provision::Create);
    let made = tokio::join!(one.source(wanted.clone()), other.source(wanted));
    assert!(made.0.is_ok() && made.1.is_ok(), "{:?} {:?}", made.0.err(), made.1.err());
    one.close().await;
    other.close().await;
}

/// FR-22: `assume` calls nobody.
#[tokio::test]
async fn fr_22_assume_calls_nobody() {
    let rocketmq = connect("127.0.0.1:9").await;
    let begun = Instant::now();
    rocketmq.source(spec("any", Kind::Fifo, Provision::Assume)).await.expect("a source");
    rocketmq.sink(destination("any", Kind::Normal, Provision::Assume)).await.expect("a sink");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // And what can't be is told without a call, all at once.
    let odd = SourceSpec { queues: 0, ..SourceSpec::new("a.b", "c d", Provision::Assume) };
    let ProvisionError::Invalid { problems, .. } = failure(&rocketmq, odd).await else {
        panic!("it is invalid")
    };
    assert_each(&problems, &["a.b", "c d", "queues 0"]);
    rocketmq.close().await;
}

async fn away(rocketmq: &Rocketmq, provision: Provision) {
    let begun = Instant::now();
    for error in [
        failure(rocketmq, spec("any", Kind::Normal, provision)).await,
        rocketmq.sink(destination("any", Kind::Normal, provision)).await.err().expect("an error"),
    ] {
        assert!(matches!(error, ProvisionError::Unavailable { .. }), "{error}");
        assert!(error.is_retryable(), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Name servers and brokers that are away are waited for by whoever asks; they are not missing topics.
#[tokio::test]
async fn fr_22_what_is_away_is_told_as_such() {
    let mut settings = settings("127.0.0.1:9");
    settings.timeouts.admin = Duration::from_secs(2);
    let rocketmq = Rocketmq::connect(settings.clone()).await.expect("a connection");
    away(&rocketmq, Provision::Validate).await;
    away(&rocketmq, Provision::Create).await;
    rocketmq.close().await;
    let mut server = own(Setup::default()).await;
    settings.name_servers = vec![server.namesrv()];
    let rocketmq = Rocketmq::connect(settings).await.expect("a connection");
    rocketmq.source(spec("any", Kind::Normal, Provision::Create)).await.expect("made");
    server.kill_broker(0);
    away(&rocketmq, Provision::Validate).await;
    away(&rocketmq, Provision::Create).await;
    rocketmq.close().await;
}

/// What a broker answers decides what is told, with its words and its name.
#[tokio::test]
async fn fr_22_what_a_broker_refuses_is_told_in_its_words() {
    let server = server().await;
    let proxy = RemotingProxy::start(server).await.expect("a proxy");
    let rocketmq = connect(&proxy.namesrv()).await;
    let cases = [
        (code::UPDATE_AND_CREATE_TOPIC, code::NO_PERMISSION, "denied"),
        (code::UPDATE_AND_CREATE_TOPIC, code::REQUEST_CODE_NOT_SUPPORTED, "failed"),
        (code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, code::SYSTEM_ERROR, "had no answer"),
        (code::GET_TOPIC_CONFIG, code::SYSTEM_BUSY, "had no answer"),
        (code::GET_SUBSCRIPTIONGROUP_CONFIG, code::NO_PERMISSION, "denied"),
    ];
    for (request, answer, expected) in cases {
        let rule = proxy.on(request).times(1).answer(answer, "as told");
        let error =
            failure(&rocketmq, spec(&unique("told"), Kind::Normal, Provision::Create)).await;
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains("as told"), "{request}: {text}");
        assert!(text.contains("broker-0") && rule.count() == 1, "{request}: {text}");
        assert_eq!(error.is_retryable(), expected == "had no answer", "{text}");
    }
    rocketmq.close().await;
}

/// Topics and groups of a namespace are others than those of the same name without.
#[tokio::test]
async fn fr_22_a_namespace_is_part_of_every_name() {
    let (server, name): (&RocketMq, _) = (server().await, unique("spaced"));
    let mut settings = settings(&server.namesrv());
    settings.namespace = Some("acme".into());
    let rocketmq = Rocketmq::connect(settings).await.expect("a connection");
    rocketmq.source(spec(&name, Kind::Normal, Provision::Create)).await.expect("made");
    let broker = &server.brokers()[0];
    let spaced = format!("acme%{name}");
    assert!(topic(broker, &spaced).await.is_some() && group(broker, &spaced).await.is_some());
    assert!(topic(broker, &name).await.is_none() && group(broker, &name).await.is_none());
    rocketmq.close().await;
}
