//! What the tests of this crate share: servers, connections, and what other programs do to a queue.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::ports::{Action, Ask, Settlement, Sink, Source, Unsettled};
use pumphouse_contract::{Count, Delivery, Outgoing};
use pumphouse_pump::SystemClock;
use pumphouse_sqs::{Provision, SinkSpec, SourceSpec, Sqs, SqsSettings, StaticCredentials};
pub(crate) use pumphouse_test_brokers::unique;
use pumphouse_test_brokers::{ElasticMq, Fauxqs, Storage, raw};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Long enough for every lease that a test does not let lapse.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// How long a message that is there may take to come.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// Runs each case against both servers.
#[macro_export]
macro_rules! against_both {
    ($($case:ident),+ $(,)?) => {
        mod fauxqs {
            $(#[tokio::test] async fn $case() { super::$case(&super::common::fauxqs().await).await })+
        }
        mod elasticmq {
            $(#[tokio::test] async fn $case() { super::$case(&super::common::elasticmq().await).await })+
        }
    };
}

/// The endpoint of the one fauxqs of this test binary.
pub(crate) async fn fauxqs() -> String {
    static SERVER: OnceCell<Fauxqs> = OnceCell::const_new();
    let start = || async { Fauxqs::start().await.expect("fauxqs starts") };
    SERVER.get_or_init(start).await.endpoint()
}

/// The endpoint of the one ElasticMQ of this test binary.
pub(crate) async fn elasticmq() -> String {
    static SERVER: OnceCell<ElasticMq> = OnceCell::const_new();
    let start = || async { ElasticMq::start(Storage::Memory).await.expect("ElasticMQ starts") };
    SERVER.get_or_init(start).await.endpoint()
}

/// Settings for a server on this machine.
pub(crate) fn settings(endpoint: &str) -> SqsSettings {
    SqsSettings {
        region: Some("us-east-1".into()),
        endpoint: Some(endpoint.to_owned()),
        credentials: Some(StaticCredentials {
            access_key_id: "test".into(),
            secret_access_key: "test".into(),
            session_token: None,
        }),
        ..SqsSettings::new(Arc::new(SystemClock::new()))
    }
}

pub(crate) async fn connect(endpoint: &str) -> Sqs {
    Sqs::connect(settings(endpoint)).await.expect("a connection")
}

/// A new queue to read from.
pub(crate) async fn source(sqs: &Sqs, queue: &str) -> Arc<dyn Source> {
    sqs.source(SourceSpec::new(queue, Provision::Create)).await.expect("a source")
}

/// A new queue to read rejected copies from.
pub(crate) async fn rejected_source(sqs: &Sqs, queue: &str) -> Arc<dyn Source> {
    let spec = SourceSpec { rejected: true, ..SourceSpec::new(queue, Provision::Create) };
    sqs.source(spec).await.expect("a source")
}

/// A new queue to publish to.
pub(crate) async fn sink(sqs: &Sqs, queue: &str) -> Arc<dyn Sink> {
    sqs.sink(SinkSpec::new(queue, Provision::Create)).await.expect("a sink")
}

pub(crate) fn outgoing(body: &str) -> Outgoing {
    Outgoing { body: body.as_bytes().to_vec().into(), ..Outgoing::default() }
}

pub(crate) fn ask(max: usize, wait: Duration, lease: Duration) -> Ask {
    Ask { max, wait, lease }
}

/// The next message, which must come soon.
pub(crate) async fn one(source: &dyn Source, lease: Duration) -> Delivery {
    let mut got = source.receive(ask(1, SOON, lease)).await.expect("a receive");
    got.pop().expect("a message")
}

/// Whether nothing comes within a second.
pub(crate) async fn is_empty(source: &dyn Source) -> bool {
    source.receive(ask(1, Duration::from_secs(1), LEASE)).await.expect("a receive").is_empty()
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

pub(crate) async fn release(source: &dyn Source, delivery: &Delivery) {
    settle(source, delivery, Action::Release(Duration::ZERO)).await.expect("a release");
}

pub(crate) fn count(delivery: &Delivery) -> Count {
    delivery.counted.count()
}

/// Calls as another program, and expects to be served.
pub(crate) async fn foreign(endpoint: &str, operation: &str, input: Value) -> Value {
    let answer = raw::sqs(endpoint, operation, &input).await.expect("an answer");
    assert!(answer.status == 200, "{operation}: {} {}", answer.status, answer.body);
    answer.body
}

pub(crate) async fn url(endpoint: &str, queue: &str) -> String {
    let found = foreign(endpoint, "GetQueueUrl", json!({ "QueueName": queue })).await;
    found["QueueUrl"].as_str().expect("a URL").to_owned()
}

/// Sends as another program.
pub(crate) async fn send(endpoint: &str, queue: &str, mut message: Value) {
    message["QueueUrl"] = url(endpoint, queue).await.into();
    foreign(endpoint, "SendMessage", message).await;
}
