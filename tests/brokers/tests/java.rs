//! RocketMQ's own client against RocketMQ: what other programs send is what they receive, over
//! one broker or two, signed or not, directly or through the proxy.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pumphouse_test_brokers::remoting::{RemotingProxy, Server, call, code};
use pumphouse_test_brokers::{JavaClient, JavaMessage, Received, RocketMq, Setup, TopicKind};
use tokio::sync::OnceCell;

/// Far longer than anything here takes.
const PLENTY: Duration = Duration::from_secs(30);

/// One for all tests that change nothing about it; it ends with their process.
static SHARED: OnceCell<RocketMq> = OnceCell::const_new();

async fn servers() -> &'static RocketMq {
    SHARED.get_or_init(async || RocketMq::start(Setup::default()).await.unwrap()).await
}

async fn create(servers: &RocketMq, topic: &str, queues: u32, kind: TopicKind) {
    servers.create_topic(topic, queues, kind).await.unwrap();
    servers.create_group(&format!("{topic}-group"), false).await.unwrap();
}

async fn receive(client: &JavaClient, topic: &str, count: u32) -> Vec<Received> {
    client.receive(topic, &format!("{topic}-group"), count, PLENTY).await.unwrap()
}

fn numbered(count: usize) -> Vec<JavaMessage> {
    (0..count).map(|number| JavaMessage::new(format!("body {number}"))).collect()
}

fn bodies(messages: &[Received]) -> Vec<&[u8]> {
    messages.iter().map(|message| &message.body[..]).collect()
}

#[tokio::test]
async fn it_receives_all_of_a_message_that_it_sent() {
    let servers = servers().await;
    create(servers, "all", 4, TopicKind::Normal).await;
    let client = servers.java_client();
    let body: Vec<u8> = (0..=255).collect();
    let message = JavaMessage::new(body.clone()).tag("blue").key("k1").key("k2");
    let sent = client.send("all", &[message.property("name", "välue ✓")]).await.unwrap();
    let received = receive(&client, "all", 1).await;
    let [message] = &received[..] else { panic!("{received:?}") };
    assert_eq!((&message.body[..], message.topic.as_str()), (&body[..], "all"));
    assert_eq!((message.tag.as_deref(), message.keys.as_deref()), (Some("blue"), Some("k1 k2")));
    assert_eq!(message.properties["name"], "välue ✓");
    assert_eq!((message.group.as_deref(), message.reconsume_times), (None, 0));
    assert_eq!((&message.id, message.broker.as_str()), (&sent[0].id, "broker-0"));
    assert_eq!((message.queue, message.offset), (sent[0].queue, sent[0].offset));
    assert!(message.born_ms > 0 && message.store_ms >= message.born_ms - 1_000);
}

#[tokio::test]
async fn it_goes_on_behind_what_it_received() {
    let servers = servers().await;
    create(servers, "onward", 1, TopicKind::Normal).await;
    let client = servers.java_client();
    client.send("onward", &numbered(5)).await.unwrap();
    let first = receive(&client, "onward", 2).await;
    assert_eq!(bodies(&first), [b"body 0", b"body 1"]);
    let second = receive(&client, "onward", 3).await;
    assert_eq!(bodies(&second), [b"body 2", b"body 3", b"body 4"]);
    assert!(second.iter().all(|message| message.reconsume_times == 0));
    let limit = Duration::from_secs(1);
    let third = client.receive("onward", "onward-group", 1, limit).await.unwrap();
    assert!(third.is_empty(), "{third:?}");
}

#[tokio::test]
async fn it_keeps_a_group_in_one_queue_and_delays() {
    let servers = servers().await;
    create(servers, "ordered", 4, TopicKind::Fifo).await;
    let client = servers.java_client();
    let messages: Vec<_> = numbered(8).into_iter().map(|message| message.group("g")).collect();
    let sent = client.send("ordered", &messages).await.unwrap();
    assert_eq!(sent.iter().map(|sent| sent.queue).collect::<BTreeSet<_>>().len(), 1);
    let received = receive(&client, "ordered", 8).await;
    assert!(received.windows(2).all(|pair| pair[0].offset < pair[1].offset));
    assert!(received.iter().all(|message| message.group.as_deref() == Some("g")));

    create(servers, "late", 1, TopicKind::Delay).await;
    let delay = Duration::from_secs(3);
    let begin = Instant::now();
    client.send("late", &[JavaMessage::new("x").delay(delay)]).await.unwrap();
    let received = receive(&client, "late", 1).await;
    assert_eq!(bodies(&received), [b"x"]);
    assert!(begin.elapsed() >= delay, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn it_works_through_the_proxy() {
    let servers = servers().await;
    create(servers, "proxied", 2, TopicKind::Normal).await;
    let proxy = RemotingProxy::start(servers).await.unwrap();
    let client = JavaClient::new(&proxy.namesrv());
    let busy = proxy.on(code::SEND_MESSAGE_V2).nth(3).answer(code::SYSTEM_BUSY, "too much to do");
    let error = client.send("proxied", &numbered(4)).await.unwrap_err().to_string();
    assert!(error.contains("too much to do"), "{error}");
    assert_eq!((busy.count(), proxy.count(code::SEND_MESSAGE_V2)), (1, 3));
    let received = receive(&client, "proxied", 2).await;
    assert_eq!(received.len(), 2);
    assert!(proxy.count(code::PULL_MESSAGE) + proxy.count(361) > 0);
    let seen = proxy.requests();
    let topic = |code, name| seen.iter().find(|r| r.code == code).unwrap().field(name);
    assert_eq!(topic(code::SEND_MESSAGE_V2, "b"), Some("proxied"));
    assert_eq!(topic(code::GET_ROUTEINFO_BY_TOPIC, "topic"), Some("proxied"));
}

/// A topic over two brokers goes on with one of them while the other is down.
#[tokio::test]
async fn a_topic_has_queues_on_two_brokers() {
    let mut servers = RocketMq::start(Setup::default().two_brokers()).await.unwrap();
    create(&servers, "wide", 2, TopicKind::Normal).await;
    let proxy = RemotingProxy::start(&servers).await.unwrap();
    let client = JavaClient::new(&proxy.namesrv());
    let used = |sent: &[pumphouse_test_brokers::Sent]| {
        sent.iter().map(|sent| sent.broker.clone()).collect::<BTreeSet<_>>()
    };
    let sent = client.send("wide", &numbered(8)).await.unwrap();
    assert_eq!(used(&sent), BTreeSet::from(["broker-0".to_owned(), "broker-1".to_owned()]));
    let seen = proxy.requests();
    for number in [0, 1] {
        assert!(seen.iter().any(|request| request.server == Server::Broker(number)));
    }
    servers.kill_broker(1);
    let namesrv = servers.namesrv();
    let begin = Instant::now();
    loop {
        let topic = [("topic", "wide")];
        let route = call(&namesrv, code::GET_ROUTEINFO_BY_TOPIC, &topic, &[]).await.unwrap();
        if !String::from_utf8_lossy(&route.body).contains("broker-1") {
            break;
        }
        assert!(begin.elapsed() < PLENTY, "the name server still leads to the dead broker");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let sent = client.send("wide", &numbered(4)).await.unwrap();
    assert_eq!(used(&sent), BTreeSet::from(["broker-0".to_owned()]));
    servers.restart_broker(1).await.unwrap();
    let received = receive(&client, "wide", 12).await;
    let places: BTreeSet<_> =
        received.iter().map(|message| (&message.broker, message.queue, message.offset)).collect();
    assert_eq!(places.len(), 12, "nothing is lost: {places:?} {:?}", proxy.counts());
}

/// A broker with a login takes its own key alone, also after a restart.
#[tokio::test]
async fn a_login_is_asked_for() {
    let setup = Setup::default().login("tester", "secret12");
    let mut servers = RocketMq::start(setup).await.unwrap();
    create(&servers, "locked", 1, TopicKind::Normal).await;
    let client = servers.java_client();
    client.send("locked", &numbered(1)).await.unwrap();
    let wrong = JavaClient::new(&servers.namesrv());
    for client in [wrong.clone(), wrong.clone().login("tester", "wrong"), wrong.login("x", "y")] {
        let error = client.send("locked", &numbered(1)).await.unwrap_err().to_string();
        assert!(error.contains("CODE: 16"), "{error}");
    }
    let answer = call(&servers.brokers()[0], code::GET_BROKER_RUNTIME_INFO, &[], &[]).await;
    assert_ne!(answer.unwrap().code, code::SUCCESS);
    servers.stop_broker(0).await.unwrap();
    servers.restart_broker(0).await.unwrap();
    client.send("locked", &numbered(1)).await.unwrap();
    assert_eq!(receive(&client, "locked", 2).await.len(), 2);
}
