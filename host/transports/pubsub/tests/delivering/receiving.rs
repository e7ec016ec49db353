use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::PubsubMessage;
use pumphouse_contract::ports::{LeaseSetting, ReceiveError};
use pumphouse_contract::{Count, Counted, HeaderValue, Headers, Outgoing};
use pumphouse_pubsub::{Provision, SourceSpec};
use pumphouse_test_brokers::grpc::GrpcProxy;

use crate::common::{
    Foreign, SHORT, SOON, ack, ask, connect, count, counted, emulator, is_empty, one, open,
    outgoing, release, sink, spec, topic, unique,
};

#[tokio::test]
async fn every_kind_of_header_and_body_comes_back() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("kinds"));
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    let headers: Headers = [("empty", ""), ("text", "ä\t\n\"\0")].into_iter().collect();
    for (body, headers) in [
        (&b"text \xc3\xa4\n"[..], headers.clone()),
        (b"\0\x01\xff", headers.clone()),
        (b"", headers),
        (b"", Headers::new()),
    ] {
        let content_type = (!headers.is_empty()).then(|| "application/json".to_owned());
        let message = Outgoing {
            headers: headers.clone(),
            content_type: content_type.clone(),
            ordering_key: Some("ä key".into()),
            body: Bytes::from_static(body),
            ..Outgoing::default()
        };
        let id = sink.publish(message).await.expect("published");
        let got = one(source.as_ref()).await;
        assert_eq!(got.undecodable, None);
        assert_eq!((got.message.id.as_str(), &got.message.body[..]), (id.as_str(), body));
        assert_eq!(got.message.headers, headers);
        assert_eq!(got.message.content_type, content_type);
        assert_eq!(got.message.ordering_key.as_deref(), Some("ä key"));
        assert!(got.message.published_at.is_some());
        ack(source.as_ref(), &got).await;
    }
    assert!(is_empty(source.as_ref()).await);
}

/// Also of Google's own clients, which put their trace among the attributes.
#[tokio::test]
async fn plain_messages_of_other_programs_are_read() {
    let endpoint = emulator().await;
    let (pubsub, name) = (connect(&endpoint).await, unique("plain"));
    let source = open(&pubsub, spec(&name)).await;
    let mut foreign = Foreign::connect(&endpoint).await;
    let pairs = [("a", "1"), ("googclient_traceparent", "00-…-01"), ("deliveryCount", "7")];
    let attributes: HashMap<_, _> = pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    let message = PubsubMessage { data: "hello".into(), attributes, ..PubsubMessage::default() };
    let id = foreign.publish(&name, message).await;
    let got = one(source.as_ref()).await;
    assert_eq!((got.message.id.clone(), got.message.body.as_ref()), (id, &b"hello"[..]));
    let expected = [("a", "1"), ("deliveryCount", "7"), ("traceparent", "00-…-01")];
    assert_eq!(got.message.headers, expected.into_iter().collect());
    assert_eq!(got.message.headers.get("a"), Some(&HeaderValue::from("1")));
    assert_eq!((&got.message.ordering_key, &got.message.content_type), (&None, &None));
}

/// C-1, C-2, C-3: strictly more each time, whether given back at once, later, or left to lapse.
#[tokio::test]
async fn c_1_the_count_goes_up_with_releases_and_lapses() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("counts"));
    let source = open(&pubsub, counted(&name)).await;
    let capabilities = source.capabilities();
    assert!(capabilities.count_advances && capabilities.lease_setting == LeaseSetting::OnSource);
    sink(&pubsub, &name).await.publish(outgoing("counted")).await.expect("published");
    let mut seen = Vec::new();
    for after in [Duration::ZERO, Duration::from_secs(1), Duration::ZERO] {
        let got = one(source.as_ref()).await;
        assert!(matches!(got.counted, Counted::AtLeast(_)));
        seen.push(count(&got));
        release(source.as_ref(), &got, after).await;
    }
    // Nobody settles these.
    for _ in 0..2 {
        seen.push(count(&one(source.as_ref()).await));
    }
    assert_eq!(seen, [0, 1, 2, 3, 4].map(Count));
}

/// C-8: the reason is the missing policy, and the source says so.
#[tokio::test]
async fn c_8_without_a_policy_nothing_is_counted() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("uncounted"));
    let source = open(&pubsub, spec(&name)).await;
    assert!(!source.capabilities().count_advances);
    sink(&pubsub, &name).await.publish(outgoing("uncounted")).await.expect("published");
    for _ in 0..3 {
        let got = one(source.as_ref()).await;
        assert_eq!((got.counted, count(&got)), (Counted::Unreported, Count(0)));
        release(source.as_ref(), &got, Duration::ZERO).await;
    }
}

/// FR-32.
#[tokio::test]
async fn fr_32_a_delayed_release_comes_back_after_the_delay_and_not_before() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("delayed"));
    let source = open(&pubsub, spec(&name)).await;
    sink(&pubsub, &name).await.publish(outgoing("later")).await.expect("published");
    let got = one(source.as_ref()).await;
    let released = Instant::now();
    release(source.as_ref(), &got, Duration::from_millis(2_100)).await;
    let again = one(source.as_ref()).await;
    assert!(released.elapsed() >= Duration::from_millis(2_900), "{:?}", released.elapsed());
    assert_eq!(again.message.id, got.message.id);
    ack(source.as_ref(), &again).await;
}

/// The wait is the service's own: neither cut nor asked again without a pause.
#[tokio::test]
async fn an_empty_subscription_is_waited_for_as_long_as_asked() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("empty"));
    let (source, sink) = (open(&pubsub, spec(&name)).await, sink(&pubsub, &name).await);
    let begun = Instant::now();
    assert!(source.receive(ask(1, Duration::ZERO)).await.expect("a look").is_empty());
    let looked = begun.elapsed();
    let begun = Instant::now();
    let wait = Duration::from_secs(3);
    assert!(source.receive(ask(1, wait)).await.expect("a wait").is_empty());
    let waited = begun.elapsed();
    assert!(looked < wait && waited >= Duration::from_secs(2), "{looked:?} {waited:?}");
    assert!(waited < wait + SOON, "{waited:?}");
    let begun = Instant::now();
    let publish = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        sink.publish(outgoing("come")).await.expect("published");
    };
    let (got, ()) = tokio::join!(source.receive(ask(1, 2 * SOON)), publish);
    assert_eq!(got.expect("a receive").len(), 1);
    assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
}

/// C-2: a message that comes while a wait ends is handed over, or not leased at all.
#[tokio::test]
async fn c_2_a_message_that_comes_when_a_wait_ends_is_not_lost() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("edges"));
    let (source, sink) = (open(&pubsub, counted(&name)).await, sink(&pubsub, &name).await);
    let wait = Duration::from_millis(200);
    for at in 0..10 {
        let publish = async {
            tokio::time::sleep(wait - Duration::from_millis(10) + at * Duration::from_millis(2))
                .await;
            sink.publish(outgoing("at the edge")).await.expect("published");
        };
        let (got, ()) = tokio::join!(source.receive(ask(1, wait)), publish);
        let got = match got.expect("a receive").pop() {
            Some(got) => got,
            None => one(source.as_ref()).await,
        };
        assert_eq!(count(&got), Count(0), "{at}");
        ack(source.as_ref(), &got).await;
    }
}

/// S-6: one of a key at a time, however many are asked for, and none overtakes another.
#[tokio::test]
async fn s_6_a_key_is_kept_in_order_over_releases() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("ordered"));
    let ordered = SourceSpec { ordered: true, ..counted(&name) };
    let (source, sink) = (open(&pubsub, ordered).await, sink(&pubsub, &name).await);
    for body in ["1", "2", "3"] {
        let message = Outgoing { ordering_key: Some("key".into()), ..outgoing(body) };
        sink.publish(message).await.expect("published");
    }
    let mut seen = Vec::new();
    for round in 0..6 {
        let mut got = source.receive(ask(10, SOON)).await.expect("a receive");
        if got.is_empty() {
            got.push(one(source.as_ref()).await);
        }
        assert_eq!(got.len(), 1);
        let got = got.remove(0);
        seen.push(String::from_utf8_lossy(&got.message.body).into_owned());
        if round % 2 == 0 {
            release(source.as_ref(), &got, Duration::ZERO).await;
        } else {
            ack(source.as_ref(), &got).await;
        }
    }
    assert_eq!(seen, ["1", "1", "2", "2", "3", "3"]);
}

#[tokio::test]
async fn a_missing_subscription_is_told_by_the_receive() {
    let (pubsub, name) = (connect(&emulator().await).await, unique("absent"));
    let assumed = SourceSpec { provision: Provision::Assume, ..spec(&name) };
    let source = open(&pubsub, assumed).await;
    for wait in [Duration::ZERO, Duration::from_secs(1)] {
        let error = source.receive(ask(1, wait)).await.expect_err("no subscription");
        assert!(matches!(error, ReceiveError::Missing(..)), "{error}");
    }
}

/// FR-33: a service that never answers is not taken for one that has no message.
#[tokio::test]
async fn fr_33_a_pull_that_is_never_answered_is_told() {
    let proxy = GrpcProxy::start(&emulator().await).await.expect("a proxy");
    let (pubsub, name) = (connect(&proxy.endpoint()).await, unique("silent"));
    let source = open(&pubsub, spec(&name)).await;
    let wait = Duration::from_secs(1);
    proxy.on("Pull").hang();
    let quiet = source.receive(ask(1, wait)).await.expect("another call is answered");
    assert!(quiet.is_empty());
    proxy.on("GetSubscription").hang();
    let error = source.receive(ask(1, wait)).await.expect_err("nothing is answered");
    assert!(matches!(error, ReceiveError::Unavailable(..)), "{error}");
    // What hung may take its connection along.
    proxy.heal().await;
    let began = Instant::now();
    while let Err(error) = source.receive(ask(1, wait)).await {
        assert!(began.elapsed() < Duration::from_secs(30), "{error}");
    }
}

/// Spelled in full, a name needs no project, nor do the ids beside it.
#[tokio::test]
async fn a_full_name_needs_no_project() {
    let endpoint = emulator().await;
    let (pubsub, name) = (connect(&endpoint).await, unique("full"));
    let source = open(&pubsub, spec(&name)).await;
    sink(&pubsub, &topic(&name)).await.publish(outgoing("full")).await.expect("published");
    let got = one(source.as_ref()).await;
    assert!(got.lease.until.since(got.lease.received) == SHORT);
    ack(source.as_ref(), &got).await;
}
