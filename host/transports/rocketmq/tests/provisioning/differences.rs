use pumphouse_rocketmq::{Kind, Provision, ProvisionError, SourceSpec};
use serde_json::json;

use crate::common::*;

/// FR-22: `validate` makes nothing, and names each thing that is missing.
#[tokio::test]
async fn fr_22_validate_names_what_is_missing_and_makes_nothing() {
    let (server, name) = (server().await, unique("missing"));
    let rocketmq = connect(&server.namesrv()).await;
    let wanted = spec(&name, Kind::Normal, Provision::Validate);
    let found = differences(&rocketmq, wanted.clone()).await;
    assert_each(&found, &[&format!("topic {name} does not exist")]);
    let error = rocketmq.sink(destination(&name, Kind::Normal, Provision::Validate)).await;
    let error = error.err().expect("an error");
    assert!(matches!(&error, ProvisionError::Differs { .. }), "{error}");
    let error = rocketmq.facts(&wanted).await.expect_err("nothing to tell of");
    assert!(!error.is_retryable(), "{error}");
    for broker in server.brokers() {
        assert_eq!((topic(&broker, &name).await, group(&broker, &name).await), (None, None));
        make_topic(&broker, &name, &[]).await;
    }
    wait_for_route(server, &name, 2).await;
    let found = differences(&rocketmq, wanted.clone()).await;
    let missing = |at: u32| format!("broker broker-{at}: group {name} does not exist");
    assert_each(&found, &[&missing(0), &missing(1)]);
    // A group that one broker alone has.
    make_group(&server.brokers()[0], &name, false, json!({})).await;
    assert_each(&differences(&rocketmq, wanted.clone()).await, &[&missing(1)]);
    make_group(&server.brokers()[1], &name, false, json!({})).await;
    rocketmq.source(wanted).await.expect("it fits");
    rocketmq.close().await;
}

/// FR-22: each difference, with both values and the broker that has it.
#[tokio::test]
async fn fr_22_validate_names_every_difference_of_every_broker() {
    let (server, name) = (server().await, unique("differing"));
    let rocketmq = connect(&server.namesrv()).await;
    let [first, second] = &server.brokers()[..] else { panic!("two brokers") };
    make_topic(first, &name, &[("attributes", "+message.type=FIFO"), ("perm", "2")]).await;
    make_topic(second, &name, &[("writeQueueNums", "4")]).await;
    make_group(first, &name, true, json!({ "consumeEnable": false })).await;
    make_group(second, &name, false, json!({})).await;
    wait_for_route(server, &name, 2).await;
    let wanted = |kind| spec(&name, kind, Provision::Validate);
    assert_each(
        &differences(&rocketmq, wanted(Kind::Normal)).await,
        &[
            "broker broker-0: its message.type is FIFO where the configuration says NORMAL",
            "broker broker-0: its perm is 2, with which it can't be read",
            "broker broker-1: its readQueueNums is 2 where its writeQueueNums is 4",
            "broker broker-0: group differing",
            "broker broker-0: group differing",
        ],
    );
    let found = differences(&rocketmq, wanted(Kind::Fifo)).await;
    assert_each(
        &found,
        &[
            "broker broker-0: its perm",
            "broker broker-1: its message.type is NORMAL where the configuration says FIFO",
            "broker broker-1: its readQueueNums",
            "its consumeEnable is false where it has to be true",
            "its consumeMessageOrderly is false where the configuration says true",
        ],
    );
    let sink = destination(&name, Kind::Fifo, Provision::Validate);
    let error = rocketmq.sink(sink).await.err().expect("it differs");
    let ProvisionError::Differs { differences, .. } = error else { panic!("{error}") };
    // What can't be read can be written to.
    assert_each(&differences, &["broker broker-1: its message.type is NORMAL"]);
    make_topic(first, &name, &[("perm", "4")]).await;
    wait_for_route(server, &name, 2).await;
    let sink = destination(&name, Kind::Normal, Provision::Validate);
    let error = rocketmq.sink(sink).await.err().expect("it differs");
    assert!(error.to_string().contains("perm is 4, with which it can't be written to"), "{error}");
    rocketmq.close().await;
}

/// What a topic does not say of its type is that it is for normal messages.
#[tokio::test]
async fn a_topic_without_a_type_is_a_normal_one() {
    let (server, name) = (server().await, unique("untyped"));
    let rocketmq = connect(&server.namesrv()).await;
    for broker in server.brokers() {
        make_topic(&broker, &name, &[]).await;
        make_group(&broker, &name, false, json!({ "retryMaxTimes": 0 })).await;
    }
    wait_for_route(server, &name, 2).await;
    let wanted = spec(&name, Kind::Normal, Provision::Validate);
    rocketmq.source(wanted.clone()).await.expect("it fits");
    let facts = rocketmq.facts(&wanted).await.expect("facts");
    assert_eq!((facts.kind, facts.retry_limit), (None, Some(1)));
    let strange = SourceSpec { group: unique("unknown"), ..wanted };
    assert_eq!(rocketmq.facts(&strange).await.expect("facts").retry_limit, None);
    rocketmq.close().await;
}
