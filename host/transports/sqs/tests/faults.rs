//! What goes wrong between the host and SQS, with the fault proxy in front of real servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test, in the helpers too"
)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{LEASE, SOON, ack, ask, connect, count, is_empty, one, outgoing, settings, unique};
use pumphouse_contract::Count;
use pumphouse_contract::ports::{
    Action, Failure, PublishError, ReceiveError, Settlement, Sink, Source,
};
use pumphouse_sqs::{Provision, SinkSpec, SourceSpec, Sqs, Timeouts};
use pumphouse_test_brokers::proxy::{Proxy, edit};
use serde_json::Value;

against_both!(
    fr_34_failed_entries_of_a_batch_are_told_apart,
    an_answer_without_counts_is_a_named_error_and_gives_the_messages_back,
    fr_33_a_receive_that_is_never_answered_returns,
    a_settlement_that_is_never_answered_returns,
    a_publish_that_is_never_confirmed_is_not_taken_for_done,
    a_request_that_fails_as_a_whole_fails_for_each,
    the_same_message_twice_in_one_receive_is_two_deliveries,
    polls_never_keep_a_settlement_waiting,
    c_6_each_step_makes_the_calls_that_the_table_says,
);

/// One queue behind a proxy.
struct Rig {
    proxy: Proxy,
    source: Arc<dyn Source>,
    sink: Arc<dyn Sink>,
}

impl Rig {
    async fn new(endpoint: &str) -> Self {
        let queue = unique("faults");
        common::sink(&connect(endpoint).await, &queue).await;
        let proxy = Proxy::start(endpoint).await.expect("a proxy");
        let mut settings = settings(&proxy.endpoint());
        let short = Duration::from_secs(1);
        settings.timeouts =
            Timeouts { poll_margin: short, settle: short, publish: short, ..Timeouts::default() };
        let sqs = Sqs::connect(settings).await.expect("a connection");
        let source =
            sqs.source(SourceSpec::new(&queue, Provision::Assume)).await.expect("a source");
        let sink = sqs.sink(SinkSpec::new(&queue, Provision::Assume)).await.expect("a sink");
        proxy.reset();
        Self { proxy, source, sink }
    }

    async fn filled(endpoint: &str, messages: usize) -> (Self, Vec<pumphouse_contract::Delivery>) {
        let rig = Self::new(endpoint).await;
        for at in 0..messages {
            rig.sink.publish(outgoing(&at.to_string())).await.expect("published");
        }
        let mut got = Vec::new();
        while got.len() < messages {
            got.extend(rig.source.receive(ask(10, SOON, LEASE)).await.expect("a receive"));
        }
        (rig, got)
    }
}

fn batch(got: &[pumphouse_contract::Delivery], action: Action) -> Vec<Settlement> {
    got.iter().map(|it| Settlement { receipt: it.receipt.clone(), action }).collect()
}

async fn fr_34_failed_entries_of_a_batch_are_told_apart(endpoint: &str) {
    for (operation, action) in [
        ("DeleteMessageBatch", Action::Ack),
        ("ChangeMessageVisibilityBatch", Action::Release(Duration::ZERO)),
    ] {
        for (code, senders, failure) in [
            ("InternalError", false, Failure::Retry),
            ("InvalidParameterValue", true, Failure::Refused),
            ("ReceiptHandleIsInvalid", true, Failure::Gone),
        ] {
            let (rig, got) = Rig::filled(endpoint, 10).await;
            let failed = rig.proxy.on(operation).nth(1).fail_entries(2, code, senders);
            let answers = rig.source.settle(batch(&got, action)).await;
            assert_eq!(failed.count(), 1);
            let unsettled: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
            assert_eq!(unsettled.len(), 2, "{code}");
            for (unsettled, delivery) in unsettled.iter().zip(&got) {
                assert_eq!(unsettled.failure, failure, "{}", unsettled.text);
                assert!(unsettled.text.contains(code), "{}", unsettled.text);
                assert_eq!(unsettled.settlement.receipt, delivery.receipt);
            }
            // Only what was confirmed is done; what failed can be asked again.
            let again = unsettled.into_iter().map(|it| it.settlement).collect();
            assert!(rig.source.settle(again).await.iter().all(Result::is_ok));
        }
    }
}

async fn an_answer_without_counts_is_a_named_error_and_gives_the_messages_back(endpoint: &str) {
    let rig = Rig::new(endpoint).await;
    for at in 0..3 {
        rig.sink.publish(outgoing(&at.to_string())).await.expect("published");
    }
    let strip = edit::without_attribute("ApproximateReceiveCount");
    rig.proxy.on("ReceiveMessage").nth(1).rewrite(strip);
    let error = rig.source.receive(ask(10, SOON, LEASE)).await.expect_err("no counter");
    assert!(matches!(error, ReceiveError::CounterMissing(..)), "{error}");
    let mut counts = Vec::new();
    for _ in 0..3 {
        counts.push(count(&one(rig.source.as_ref(), LEASE).await));
    }
    assert!(counts.contains(&Count(1)), "at once, not when the lease of a minute lapses");
}

/// FR-33: whether nothing comes at all or only the head of an answer.
async fn fr_33_a_receive_that_is_never_answered_returns(endpoint: &str) {
    let rig = Rig::new(endpoint).await;
    let (wait, margin) = (Duration::from_secs(1), Duration::from_secs(1));
    for nth in 0..3 {
        match nth {
            0 => drop(rig.proxy.on("ReceiveMessage").times(1).hang()),
            1 => drop(rig.proxy.on("ReceiveMessage").times(1).headers_only()),
            _ => rig.proxy.half_open(),
        }
        let begin = Instant::now();
        let error = rig.source.receive(ask(10, wait, LEASE)).await.expect_err("no answer");
        let took = begin.elapsed();
        assert!(matches!(error, ReceiveError::Unavailable(..)), "{error}");
        assert!(took < wait + margin + Duration::from_secs(1), "{took:?}");
        // The next one has a new connection.
        rig.sink.publish(outgoing("next")).await.ok();
        let next = rig.source.receive(ask(10, wait, LEASE)).await;
        assert!(next.is_ok(), "{nth}: {next:?}");
    }
}

async fn a_settlement_that_is_never_answered_returns(endpoint: &str) {
    let (rig, got) = Rig::filled(endpoint, 2).await;
    let hung = rig.proxy.on("DeleteMessageBatch").nth(1).hang();
    let begin = Instant::now();
    let answers = rig.source.settle(batch(&got, Action::Ack)).await;
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert_eq!(hung.count(), 1);
    for answer in answers {
        let unsettled = answer.expect_err("no answer");
        assert_eq!(unsettled.failure, Failure::Retry, "{}", unsettled.text);
    }
    assert!(rig.source.settle(batch(&got, Action::Ack)).await.iter().all(Result::is_ok));
}

/// C-9: an unknown outcome counts as failed, whether it happened or not.
async fn a_publish_that_is_never_confirmed_is_not_taken_for_done(endpoint: &str) {
    let rig = Rig::new(endpoint).await;
    rig.proxy.on("SendMessage").nth(1).hang();
    rig.proxy.on("SendMessage").nth(1).drop_before();
    rig.proxy.on("SendMessage").nth(1).drop_after();
    rig.proxy.on("SendMessage").nth(1).error(503, "ServiceUnavailable", "later");
    rig.proxy.on("SendMessage").nth(1).error(400, "RequestThrottled", "slower");
    for fault in 0..5 {
        let error = rig.sink.publish(outgoing("unsure")).await.expect_err("not confirmed");
        assert!(matches!(error, PublishError::Unavailable(..)), "{fault}: {error}");
    }
    assert_eq!(rig.proxy.count("SendMessage"), 5, "the transport never retries");
    rig.proxy.on("SendMessage").nth(1).error(403, "AccessDenied", "no");
    let error = rig.sink.publish(outgoing("denied")).await.expect_err("denied");
    assert!(matches!(error, PublishError::Refused(..)), "{error}");
    // The one that was forwarded before its connection was dropped is there.
    ack(rig.source.as_ref(), &one(rig.source.as_ref(), LEASE).await).await;
    assert!(is_empty(rig.source.as_ref()).await);
}

async fn a_request_that_fails_as_a_whole_fails_for_each(endpoint: &str) {
    let (rig, got) = Rig::filled(endpoint, 3).await;
    for (status, code, failure) in [
        (500, "InternalError", Failure::Retry),
        (400, "RequestThrottled", Failure::Retry),
        (403, "AccessDenied", Failure::Refused),
        (400, "AWS.SimpleQueueService.NonExistentQueue", Failure::Gone),
    ] {
        rig.proxy.on("DeleteMessageBatch").times(1).error(status, code, "scripted");
        for answer in rig.source.settle(batch(&got, Action::Ack)).await {
            let unsettled = answer.expect_err("it failed");
            assert_eq!(unsettled.failure, failure, "{}", unsettled.text);
        }
    }
    for (status, code) in
        [(403, "AccessDenied"), (400, "QueueDoesNotExist"), (500, "InternalError")]
    {
        rig.proxy.on("ReceiveMessage").times(1).error(status, code, "scripted");
        let error = rig.source.receive(ask(1, SOON, LEASE)).await.expect_err("it failed");
        let fits = match code {
            "AccessDenied" => matches!(error, ReceiveError::Denied(..)),
            "QueueDoesNotExist" => matches!(error, ReceiveError::Missing(..)),
            _ => matches!(error, ReceiveError::Unavailable(..)),
        };
        assert!(fits, "{code}: {error}");
    }
}

async fn the_same_message_twice_in_one_receive_is_two_deliveries(endpoint: &str) {
    let rig = Rig::new(endpoint).await;
    rig.sink.publish(outgoing("twice")).await.expect("published");
    rig.proxy.on("ReceiveMessage").nth(1).rewrite(edit::twice);
    let got = rig.source.receive(ask(10, SOON, LEASE)).await.expect("a receive");
    assert_eq!(got.len(), 2);
    for answer in rig.source.settle(batch(&got, Action::Ack)).await {
        if let Err(unsettled) = answer {
            assert_eq!(unsettled.failure, Failure::Gone, "{}", unsettled.text);
        }
    }
    assert!(is_empty(rig.source.as_ref()).await);
}

async fn polls_never_keep_a_settlement_waiting(endpoint: &str) {
    let (rig, got) = Rig::filled(endpoint, 1).await;
    let poll = |source: Arc<dyn Source>| async move {
        source.receive(ask(1, SOON, LEASE)).await.expect("a receive")
    };
    let polls: Vec<_> = (0..20).map(|_| tokio::spawn(poll(rig.source.clone()))).collect();
    assert!(rig.proxy.wait_for("ReceiveMessage", 21, SOON).await);
    let begin = Instant::now();
    assert!(rig.source.settle(batch(&got, Action::Ack)).await.iter().all(Result::is_ok));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert!(rig.proxy.in_flight("ReceiveMessage") > 0);
    for poll in polls {
        poll.await.expect("a poll");
    }
}

/// C-6: the table of docs/sqs.md, and what each receive asks for.
async fn c_6_each_step_makes_the_calls_that_the_table_says(endpoint: &str) {
    let (rig, got) = Rig::filled(endpoint, 1).await;
    let receives = rig.proxy.count("ReceiveMessage");
    let asked: Vec<Value> = rig
        .proxy
        .requests()
        .iter()
        .filter(|seen| seen.operation == "ReceiveMessage")
        .map(|seen| seen.json())
        .collect();
    for asked in &asked {
        let names = asked["MessageSystemAttributeNames"].as_array().expect("names");
        assert!(names.contains(&"ApproximateReceiveCount".into()), "{names:?}");
        assert_eq!(asked["VisibilityTimeout"], 60);
    }
    assert_eq!(asked.len() as u64, receives);
    rig.proxy.reset();
    let release = Action::Release(Duration::ZERO);
    assert!(rig.source.settle(batch(&got, release)).await.iter().all(Result::is_ok));
    assert_eq!(calls(&rig.proxy), [("ChangeMessageVisibilityBatch".to_owned(), 1)]);
    let got = vec![one(rig.source.as_ref(), LEASE).await];
    rig.proxy.reset();
    assert!(rig.source.settle(batch(&got, Action::Ack)).await.iter().all(Result::is_ok));
    assert_eq!(calls(&rig.proxy), [("DeleteMessageBatch".to_owned(), 1)]);
    rig.proxy.reset();
    rig.sink.publish(outgoing("copy")).await.expect("published");
    assert_eq!(calls(&rig.proxy), [("SendMessage".to_owned(), 1)]);
}

fn calls(proxy: &Proxy) -> Vec<(String, u64)> {
    proxy.counts().into_iter().collect()
}

/// FR-32: against the rule itself, twelve hours from the receive.
#[tokio::test]
async fn fr_32_a_delay_of_twelve_hours_is_what_is_left_of_them() {
    let (rig, got) = Rig::filled(&common::fauxqs().await, 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    rig.proxy.reset();
    let delay = Action::Release(Duration::from_secs(43_200));
    assert!(rig.source.settle(batch(&got, delay)).await.iter().all(Result::is_ok));
    let asked = rig.proxy.requests().first().expect("a request").json();
    let seconds = asked["Entries"][0]["VisibilityTimeout"].as_u64().expect("seconds");
    assert!((43_100..=43_198).contains(&seconds), "{seconds}");
}
