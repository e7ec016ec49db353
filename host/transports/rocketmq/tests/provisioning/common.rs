//! Servers, connections, and what other programs do to topics and groups.

use std::time::{Duration, Instant};

use pumphouse_rocketmq::{Kind, Provision, ProvisionError, Rocketmq, SinkSpec, SourceSpec};
use pumphouse_test_brokers::remoting::{Answer, call, code};
use pumphouse_test_brokers::{RocketMq, Setup};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub(crate) use crate::shared::{own, settings, unique};

/// The one server of the tests that do not stop it: two brokers.
pub(crate) async fn server() -> &'static RocketMq {
    static SERVER: OnceCell<RocketMq> = OnceCell::const_new();
    SERVER.get_or_init(|| own(Setup::default().two_brokers())).await
}

pub(crate) async fn connect(namesrv: &str) -> Rocketmq {
    Rocketmq::connect(settings(namesrv)).await.expect("a connection")
}

/// A topic and a group of the same name.
pub(crate) fn spec(name: &str, kind: Kind, provision: Provision) -> SourceSpec {
    SourceSpec { kind, queues: 3, ..SourceSpec::new(name, name, provision) }
}

pub(crate) fn destination(name: &str, kind: Kind, provision: Provision) -> SinkSpec {
    SinkSpec { kind, queues: 3, ..SinkSpec::new(name, provision) }
}

pub(crate) async fn failure(rocketmq: &Rocketmq, spec: SourceSpec) -> ProvisionError {
    rocketmq.source(spec).await.err().expect("an error")
}

/// What a source differs in, which it must.
pub(crate) async fn differences(rocketmq: &Rocketmq, spec: SourceSpec) -> Vec<String> {
    let error = failure(rocketmq, spec).await;
    let ProvisionError::Differs { differences, .. } = error else { panic!("{error}") };
    differences
}

/// Whether there is one difference for each of these texts, in their order.
pub(crate) fn assert_each(differences: &[String], texts: &[&str]) {
    let fits = differences.len() == texts.len()
        && differences.iter().zip(texts).all(|(difference, text)| difference.contains(text));
    assert!(fits, "{differences:#?} where {texts:#?} was expected");
}

async fn told(broker: &str, code: i32, fields: &[(&str, &str)], body: &[u8]) -> Answer {
    let answer = call(broker, code, fields, body).await.expect("an answer");
    assert_eq!(answer.code, code::SUCCESS, "{answer:?}");
    answer
}

/// What a broker has of a topic; none where it has none.
pub(crate) async fn topic(broker: &str, name: &str) -> Option<Value> {
    read(broker, code::GET_TOPIC_CONFIG, ("topic", name)).await
}

/// What a broker has of a group; none where it has none.
pub(crate) async fn group(broker: &str, name: &str) -> Option<Value> {
    read(broker, code::GET_SUBSCRIPTIONGROUP_CONFIG, ("group", name)).await
}

async fn read(broker: &str, code: i32, field: (&str, &str)) -> Option<Value> {
    let answer = call(broker, code, &[field], &[]).await.expect("an answer");
    (answer.code == code::SUCCESS).then(|| serde_json::from_slice(&answer.body).expect("JSON"))
}

/// A topic as another program makes it, on one broker.
pub(crate) async fn make_topic(broker: &str, name: &str, changes: &[(&str, &str)]) {
    let mut fields = vec![
        ("topic", name),
        ("defaultTopic", "TBW102"),
        ("readQueueNums", "2"),
        ("writeQueueNums", "2"),
        ("perm", "6"),
        ("topicFilterType", "SINGLE_TAG"),
        ("topicSysFlag", "0"),
        ("order", "false"),
    ];
    for change in changes {
        fields.retain(|field| field.0 != change.0);
        fields.push(*change);
    }
    told(broker, code::UPDATE_AND_CREATE_TOPIC, &fields, &[]).await;
}

/// A group as another program makes it, on one broker.
pub(crate) async fn make_group(broker: &str, name: &str, orderly: bool, changes: Value) {
    let mut group =
        json!({ "groupName": name, "consumeEnable": true, "consumeMessageOrderly": orderly });
    for (field, value) in changes.as_object().expect("an object") {
        group[field] = value.clone();
    }
    let code = code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP;
    told(broker, code, &[], group.to_string().as_bytes()).await;
}

/// Waits until the name server leads to a topic.
pub(crate) async fn wait_for_route(server: &RocketMq, name: &str, brokers: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let fields = [("topic", name)];
        let answer = call(&server.namesrv(), code::GET_ROUTEINFO_BY_TOPIC, &fields, &[]).await;
        let body = answer.expect("an answer").body;
        let text = String::from_utf8_lossy(&body);
        if server.brokers().iter().filter(|broker| text.contains(*broker)).count() == brokers {
            return;
        }
        assert!(Instant::now() < until, "no route: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
