use std::time::{Duration, Instant};

use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{Action, Ask, PublishError, Settlement};
use pumphouse_rocketmq::{Access, Kind, Provision, ProvisionError, Rocketmq};
use pumphouse_test_brokers::{RocketMq, Setup};

use crate::common::*;

const KEY: &str = "pumphouse";
const SECRET: &str = "a secret of 16 or more";

async fn signed(server: &RocketMq, secret: &str) -> Rocketmq {
    let mut settings = settings(&server.namesrv());
    settings.access = Some(Access { key: KEY.into(), secret: secret.into() });
    Rocketmq::connect(settings).await.expect("a connection")
}

/// A broker that asks for signatures is made topics at, published to and read from with the right ones; without, or
/// with others, it is told as denied, and not waited for.
#[tokio::test]
async fn requests_are_signed() {
    let server = own(Setup::default().login(KEY, SECRET)).await;
    let name = unique("signed");
    let wanted = spec(&name, Kind::Normal, Provision::Create);
    for stranger in [connect(&server.namesrv()).await, signed(&server, "another secret").await] {
        let error = failure(&stranger, wanted.clone()).await;
        assert!(matches!(error, ProvisionError::Denied { .. }), "{error}");
        assert!(!error.to_string().contains(SECRET), "{error}");
        stranger.close().await;
    }
    let rocketmq = signed(&server, SECRET).await;
    let source = rocketmq.source(wanted).await.expect("made");
    let sink = rocketmq.sink(destination(&name, Kind::Normal, Provision::Validate)).await;
    let body = || Outgoing { body: "body ü".into(), ..Outgoing::default() };
    sink.expect("it fits").publish(body()).await.expect("published");
    let until = Instant::now() + Duration::from_secs(20);
    let delivery = loop {
        let ask = Ask { max: 1, wait: Duration::from_secs(2), lease: Duration::from_secs(60) };
        if let Some(got) = source.receive(ask).await.expect("a receive").pop() {
            break got;
        }
        assert!(Instant::now() < until, "no message came");
    };
    assert_eq!(delivery.message.body, body().body);
    let ack = Settlement { receipt: delivery.receipt.clone(), action: Action::Ack };
    source.settle(vec![ack]).await.pop().expect("an answer").expect("acknowledged");
    rocketmq.close().await;
    // The topic is there, and the name server tells everyone of it.
    let stranger = connect(&server.namesrv()).await;
    let sink = stranger.sink(destination(&name, Kind::Normal, Provision::Assume)).await;
    let error = sink.expect("a sink").publish(body()).await.expect_err("denied");
    assert!(matches!(error, PublishError::Refused(..)), "{error}");
    stranger.close().await;
}
