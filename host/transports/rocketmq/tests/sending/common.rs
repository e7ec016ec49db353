//! The server, connections, and what a test sends and reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pumphouse_contract::ports::{Action, Ask, Settlement, Sink, Source};
use pumphouse_contract::{
    Count, Delivery, Message, Outgoing, Provenance, Reason, Timestamp, Why, rejected_copy,
};
use pumphouse_rocketmq::{Kind, Provision, Rocketmq, SinkSpec, SourceSpec};
use pumphouse_test_brokers::{Received, RocketMq, Setup};
use tokio::sync::OnceCell;

pub(crate) use crate::shared::{own, settings, unique};

/// How long a message that is there may take to come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The one server of the tests that do not stop it.
pub(crate) async fn server() -> &'static RocketMq {
    static SERVER: OnceCell<RocketMq> = OnceCell::const_new();
    SERVER.get_or_init(|| own(Setup::default())).await
}

pub(crate) async fn connect(namesrv: &str) -> Rocketmq {
    Rocketmq::connect(settings(namesrv)).await.expect("a connection")
}

/// A topic and a group of the same name.
pub(crate) fn spec(name: &str, kind: Kind) -> SourceSpec {
    SourceSpec { kind, queues: 4, ..SourceSpec::new(name, name, Provision::Create) }
}

/// One that knows rejected copies.
pub(crate) fn copies(name: &str, kind: Kind) -> SourceSpec {
    SourceSpec { rejected: true, ..spec(name, kind) }
}

pub(crate) async fn open(rocketmq: &Rocketmq, spec: SourceSpec) -> Arc<dyn Source> {
    rocketmq.source(spec).await.expect("a source")
}

pub(crate) async fn sink(rocketmq: &Rocketmq, name: &str, kind: Kind) -> Arc<dyn Sink> {
    let spec = SinkSpec { kind, queues: 4, ..SinkSpec::new(name, Provision::Create) };
    rocketmq.sink(spec).await.expect("a sink")
}

/// A sink that called nothing at its start.
pub(crate) async fn assumed(rocketmq: &Rocketmq, name: &str, kind: Kind) -> Arc<dyn Sink> {
    let spec = SinkSpec { kind, ..SinkSpec::new(name, Provision::Assume) };
    rocketmq.sink(spec).await.expect("a sink")
}

pub(crate) fn outgoing(body: &str) -> Outgoing {
    Outgoing { body: body.as_bytes().to_vec().into(), ..Outgoing::default() }
}

pub(crate) fn keyed(body: &str, key: &str) -> Outgoing {
    Outgoing { ordering_key: Some(key.to_owned()), ..outgoing(body) }
}

/// The copy that a host makes of a message.
pub(crate) fn rejected(original: &Delivery, description: &str) -> Outgoing {
    copy_of(&original.message, original.counted.count(), description)
}

pub(crate) fn copy_of(message: &Message, count: Count, description: &str) -> Outgoing {
    let from = Provenance {
        source: "orders",
        rejected_by: "orders/acme/orders@abc",
        now: Timestamp(1_796_007_014_123),
    };
    let why = Why::Handler(description.to_owned());
    rejected_copy(message, count, Reason::Unacceptable, &why, from)
}

/// The next message, which must come soon.
pub(crate) async fn one(source: &dyn Source) -> Delivery {
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        let ask = Ask { max: 1, wait: Duration::from_secs(2), lease: Duration::from_secs(60) };
        if let Some(got) = source.receive(ask).await.expect("a receive").pop() {
            return got;
        }
    }
    panic!("no message came");
}

pub(crate) async fn ack(source: &dyn Source, delivery: &Delivery) {
    let settlement = Settlement { receipt: delivery.receipt.clone(), action: Action::Ack };
    source.settle(vec![settlement]).await.pop().expect("an answer").expect("an acknowledgement");
}

/// What RocketMQ's own client reads of a topic.
pub(crate) async fn foreign(server: &RocketMq, topic: &str, count: u32) -> Vec<Received> {
    let group = unique("foreign");
    server.create_group(&group, false).await.expect("a group");
    let got = server.java_client().receive(topic, &group, count, Duration::from_secs(60)).await;
    let got = got.expect("messages");
    assert_eq!(got.len(), count as usize, "{got:#?}");
    got
}
