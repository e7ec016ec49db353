use std::time::{Duration, Instant};

use pumphouse_contract::ports::{Depth, PublishError};
use pumphouse_contract::{Headers, Outgoing};
use pumphouse_rocketmq::{Kind, Provision, Rocketmq, SinkSpec};
use pumphouse_test_brokers::remoting::{RemotingProxy, call, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};

use crate::common::*;

async fn has_topic(server: &RocketMq, name: &str) -> bool {
    let answer = call(&server.brokers()[0], code::GET_TOPIC_CONFIG, &[("topic", name)], &[]).await;
    answer.expect("an answer").code == code::SUCCESS
}

async fn delete(server: &RocketMq, name: &str) {
    let topic = [("topic", name)];
    for broker in server.brokers() {
        let gone = call(&broker, code::DELETE_TOPIC_IN_BROKER, &topic, &[]).await;
        assert_eq!(gone.expect("an answer").code, code::SUCCESS);
    }
}

/// C-13: a publish never makes its destination, also at a broker that makes topics by itself, and also where the
/// topic was there a moment ago.
#[tokio::test]
async fn c_13_a_missing_topic_is_told_at_the_publish_and_never_made() {
    let server = own(Setup::default().auto_create_topics()).await;
    let name = unique("absent");
    let rocketmq = connect(&server.namesrv()).await;
    let sink = assumed(&rocketmq, &name, Kind::Normal).await;
    for message in [outgoing("body"), keyed("body", "key")] {
        let error = sink.publish(message).await.expect_err("no topic");
        assert!(matches!(&error, PublishError::Missing(at, _) if *at == name), "{error}");
    }
    assert!(!has_topic(&server, &name).await);
    assert_eq!(sink.depth().await, Ok(Depth::default()));
    // Once it is there, the same sink works.
    server.create_topic(&name, 2, TopicKind::Normal).await.expect("made");
    let until = Instant::now() + SOON;
    while let Err(error) = sink.publish(outgoing("body")).await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // And says so again once it is gone: the route is known, and the broker is asked.
    delete(&server, &name).await;
    for _ in 0..2 {
        let error = sink.publish(outgoing("body")).await.expect_err("no topic");
        assert!(matches!(error, PublishError::Missing(..)), "{error}");
    }
    assert!(!has_topic(&server, &name).await);
    rocketmq.close().await;
}

/// C-9: what the broker says decides what is told, and nothing is tried twice.
#[tokio::test]
async fn c_9_a_failed_publish_is_told_at_once_and_tried_once() {
    let (server, name) = (server().await, unique("failing"));
    let proxy = RemotingProxy::start(server).await.expect("a proxy");
    let rocketmq = connect(&proxy.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Fifo).await;
    let source = open(&rocketmq, spec(&name, Kind::Fifo)).await;
    let cases: [(i32, &str); 8] = [
        (code::SYSTEM_ERROR, "unavailable"),
        (code::SYSTEM_BUSY, "unavailable"),
        (code::SERVICE_NOT_AVAILABLE, "unavailable"),
        // Stored, but not as safely as the broker is configured to.
        (code::FLUSH_DISK_TIMEOUT, "not flushed"),
        (11, "not replicated"),
        (code::NO_PERMISSION, "refused"),
        (code::MESSAGE_ILLEGAL, "refused"),
        (code::TOPIC_NOT_EXIST, "does not exist"),
    ];
    for (at, (status, expected)) in cases.into_iter().enumerate() {
        let rule = proxy.on(code::SEND_MESSAGE_V2).times(1).answer(status, "as told");
        let error = sink.publish(keyed("body", "key")).await.expect_err("failed").to_string();
        assert!(error.contains(expected) && error.contains("as told"), "{status}: {error}");
        assert_eq!((rule.count(), proxy.count(code::SEND_MESSAGE_V2)), (1, at as u64 + 1));
    }
    sink.publish(keyed("body", "key")).await.expect("the group is not blocked");
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    rocketmq.close().await;
}

/// C-9: an unknown outcome is a failed one. The message may be there.
#[tokio::test]
async fn c_9_an_answer_that_is_lost_or_late_is_a_failed_publish() {
    let (server, name) = (server().await, unique("unknown"));
    let proxy = RemotingProxy::start(server).await.expect("a proxy");
    let mut settings = settings(&proxy.namesrv());
    settings.timeouts.publish = Duration::from_secs(2);
    let rocketmq = Rocketmq::connect(settings).await.expect("a connection");
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    let source = open(&rocketmq, spec(&name, Kind::Normal)).await;
    // A first request may take the server a while.
    while sink.publish(outgoing("first")).await.is_err() {}
    ack(source.as_ref(), &one(source.as_ref()).await).await;
    let lost = proxy.on(code::SEND_MESSAGE_V2).times(1).drop_after();
    let begun = Instant::now();
    let error = sink.publish(outgoing("lost")).await.expect_err("no answer");
    let waited = begun.elapsed();
    assert!(matches!(error, PublishError::Unavailable(..)) && lost.count() == 1, "{error}");
    assert!(
        (Duration::from_millis(1_900)..Duration::from_secs(10)).contains(&waited),
        "{waited:?}"
    );
    let got = one(source.as_ref()).await;
    assert_eq!(got.message.body, "lost");
    ack(source.as_ref(), &got).await;
    let closed = proxy.on(code::SEND_MESSAGE_V2).times(1).close_before();
    let error = sink.publish(outgoing("never")).await.expect_err("no answer");
    assert!(matches!(error, PublishError::Unavailable(..)) && closed.count() == 1, "{error}");
    sink.publish(outgoing("after")).await.expect("published");
    assert_eq!(one(source.as_ref()).await.message.body, "after");
    rocketmq.close().await;
}

/// What the broker does not take is refused, in its words; what it would take and not carry, by name.
#[tokio::test]
async fn what_rocketmq_does_not_take_is_refused() {
    let (server, name) = (server().await, unique("refused"));
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    let refused = async |message: Outgoing| match sink.publish(message).await {
        Err(PublishError::Refused(_, text)) => text,
        answer => panic!("{answer:?}"),
    };
    for name in ["DELAY", "TIMER_DELIVER_MS", "UNIQ_KEY", "POP_CK", "__SHARDINGKEY"] {
        let headers: Headers = [(name, "1")].into_iter().collect();
        let text = refused(Outgoing { headers, ..outgoing("body") }).await;
        assert!(text.contains(name), "{text}");
    }
    for megabytes in [5, 17] {
        let body = vec![0; megabytes * 1024 * 1024].into();
        let text = refused(Outgoing { body, ..Outgoing::default() }).await;
        assert!(text.contains("4194304") || text.contains("16252928"), "{text}");
    }
    // The connection that everything shares is none the worse.
    sink.publish(outgoing("body")).await.expect("published");
    rocketmq.close().await;
}

/// A broker that is away is passed over by the next publish, and used again once it is back.
#[tokio::test]
async fn a_broker_that_is_away_is_passed_over_by_the_next_publish() {
    let mut server = own(Setup::default().two_brokers()).await;
    let name = unique("away");
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    for _ in 0..8 {
        sink.publish(outgoing("before")).await.expect("published");
    }
    server.kill_broker(1);
    let mut failed = 0;
    for _ in 0..16 {
        match sink.publish(outgoing("meanwhile")).await {
            Ok(_) => {}
            Err(PublishError::Unavailable(..)) => failed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed <= 1, "{failed}");
    server.kill_broker(0);
    let begun = Instant::now();
    // So often that the client's own breaker would not let the broker be tried for half a minute.
    for _ in 0..10 {
        let error = sink.publish(outgoing("nobody")).await.expect_err("nobody is there");
        assert!(matches!(error, PublishError::Unavailable(..)), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    server.restart_broker(0).await.expect("restarted");
    let until = Instant::now() + SOON;
    while let Err(error) = sink.publish(outgoing("after")).await {
        assert!(matches!(error, PublishError::Unavailable(..)), "{error}");
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rocketmq.close().await;
}

/// A name server that is away holds up nobody who knows the route; nobody there is told as such.
#[tokio::test]
async fn a_name_server_that_is_away_does_not_stop_publishing() {
    let mut server = own(Setup::default()).await;
    let name = unique("alone");
    let rocketmq = connect(&server.namesrv()).await;
    let known = sink(&rocketmq, &name, Kind::Normal).await;
    known.publish(outgoing("before")).await.expect("published");
    server.kill_namesrv();
    known.publish(outgoing("meanwhile")).await.expect("published");
    let unknown = assumed(&rocketmq, &name, Kind::Normal).await;
    let error = unknown.publish(outgoing("nobody")).await.expect_err("no route");
    assert!(matches!(error, PublishError::Unavailable(..)), "{error}");
    let spec = SinkSpec::new(&name, Provision::Validate);
    let error = rocketmq.sink(spec).await.err().expect("nobody to ask");
    assert!(error.is_retryable(), "{error}");
    server.restart_namesrv().await.expect("restarted");
    unknown.publish(outgoing("after")).await.expect("published");
    rocketmq.close().await;
}
