use std::time::Duration;

use pumphouse_contract::Receipt;
use pumphouse_contract::ports::{Action, Failure, Settlement};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};

use crate::common::{
    ack, ask, connect, emulator, is_empty, one, open, outgoing, release, settings, settle, sink,
    spec, unique,
};

/// FR-34, and the table of calls: one request for the acknowledgements, one for each delay.
#[tokio::test]
async fn fr_34_a_batch_is_one_request_for_each_kind_of_action() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let (pubsub, name) = (connect(&proxy.endpoint()).await, unique("batch"));
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    for body in ["0", "1", "2", "3"] {
        sink.publish(outgoing(body)).await.expect("published");
    }
    let mut got = Vec::new();
    while got.len() < 4 {
        got.extend(source.receive(ask(10, Duration::from_secs(5))).await.expect("a receive"));
    }
    proxy.reset();
    let (soon, later) = (Duration::ZERO, Duration::from_secs(60));
    let actions = [Action::Ack, Action::Release(soon), Action::Ack, Action::Release(later)];
    let settlements = got.iter().zip(actions);
    let settlements = settlements
        .map(|(one, action)| Settlement { receipt: one.receipt.clone(), action })
        .collect();
    let answers = source.settle(settlements).await;
    assert_eq!(answers, vec![Ok(()); 4]);
    assert_eq!((proxy.count("Acknowledge"), proxy.count("ModifyAckDeadline")), (1, 2));
    let back = one(source.as_ref()).await;
    assert_eq!(back.message.id, got[1].message.id);
    ack(source.as_ref(), &back).await;
    assert!(is_empty(source.as_ref()).await);
    proxy.reset();
    assert!(source.settle(Vec::new()).await.is_empty());
    assert_eq!(proxy.count("Acknowledge") + proxy.count("ModifyAckDeadline"), 0);
}

/// FR-34: a failed settlement is told with what it means, and the delivery stays ours.
#[tokio::test]
async fn fr_34_a_failed_settlement_is_told_and_can_be_asked_again() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let (pubsub, name) = (connect(&proxy.endpoint()).await, unique("refused"));
    let source = open(&pubsub, spec(&name)).await;
    sink(&pubsub, &name).await.publish(outgoing("body")).await.expect("published");
    let got = one(source.as_ref()).await;
    for (method, action) in
        [("Acknowledge", Action::Ack), ("ModifyAckDeadline", Action::Release(Duration::ZERO))]
    {
        for (status, failure) in [
            (code::UNAVAILABLE, Failure::Retry),
            (code::NOT_FOUND, Failure::Gone),
            (code::PERMISSION_DENIED, Failure::Refused),
        ] {
            let rule = proxy.on(method).times(1).status(status, "as told");
            let unsettled = settle(source.as_ref(), &got, action).await.expect_err("refused");
            assert_eq!(unsettled.failure, failure, "{method}: {}", unsettled.text);
            assert_eq!(unsettled.settlement, Settlement { receipt: got.receipt.clone(), action });
            assert!(unsettled.text.contains("as told") && rule.count() == 1);
        }
    }
    ack(source.as_ref(), &got).await;
    assert!(is_empty(source.as_ref()).await);
}

/// An acknowledgement that was done and never confirmed is asked again, which harms nothing.
#[tokio::test]
async fn c_9_a_lost_or_late_answer_is_a_failed_settlement() {
    let endpoint = emulator().await;
    let proxy = GrpcProxy::start(&endpoint).await.expect("a proxy");
    let mut settings = settings(&proxy.endpoint());
    settings.timeouts.settle = Duration::from_secs(2);
    let pubsub = pumphouse_pubsub::Pubsub::connect(settings).await.expect("a connection");
    let name = unique("lost");
    let source = open(&pubsub, spec(&name)).await;
    sink(&pubsub, &name).await.publish(outgoing("body")).await.expect("published");
    let got = one(source.as_ref()).await;
    let late = proxy.on("Acknowledge").times(1).hang();
    let unsettled = settle(source.as_ref(), &got, Action::Ack).await.expect_err("no answer");
    assert!(unsettled.failure == Failure::Retry && late.count() == 1, "{}", unsettled.text);
    let lost = proxy.on("Acknowledge").times(1).drop_after();
    let unsettled = settle(source.as_ref(), &got, Action::Ack).await.expect_err("no answer");
    assert!(unsettled.failure == Failure::Retry && lost.count() == 1, "{}", unsettled.text);
    ack(source.as_ref(), &got).await;
    assert!(is_empty(source.as_ref()).await);
}

/// The emulator says yes to them; Pub/Sub itself does, without exactly-once delivery.
#[tokio::test]
async fn a_stale_receipt_harms_nothing() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("stale"));
    let source = open(&pubsub, spec(&name)).await;
    sink(&pubsub, &name).await.publish(outgoing("body")).await.expect("published");
    let stale = one(source.as_ref()).await;
    release(source.as_ref(), &stale, Duration::ZERO).await;
    let got = one(source.as_ref()).await;
    ack(source.as_ref(), &got).await;
    for action in [Action::Ack, Action::Release(Duration::ZERO)] {
        settle(source.as_ref(), &stale, action).await.expect("tolerated");
        settle(source.as_ref(), &got, action).await.expect("tolerated");
    }
    assert!(is_empty(source.as_ref()).await);
}

/// A receipt that is none of Pub/Sub's is refused, and is no reason to ask again.
#[tokio::test]
async fn a_receipt_of_nobody_is_refused() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("nobody"));
    let source = open(&pubsub, spec(&name)).await;
    let settlement = Settlement { receipt: Receipt::from("x".to_owned()), action: Action::Ack };
    let answer = source.settle(vec![settlement]).await.pop().expect("an answer");
    assert_eq!(answer.expect_err("no receipt").failure, Failure::Refused);
}
