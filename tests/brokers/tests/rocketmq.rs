//! RocketMQ as it is: it starts, does what tests rely on, and keeps what it should.

// The lints' exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use pumphouse_test_brokers::remoting::{Answer, call, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};

async fn send(broker: &str, topic: &str, body: &str) -> Answer {
    let fields = [
        ("producerGroup", "p"),
        ("topic", topic),
        ("defaultTopic", "TBW102"),
        ("defaultTopicQueueNums", "1"),
        ("queueId", "0"),
        ("sysFlag", "0"),
        ("bornTimestamp", "0"),
        ("flag", "0"),
        ("properties", ""),
        ("reconsumeTimes", "0"),
        ("unitMode", "false"),
        ("batch", "false"),
    ];
    call(broker, code::SEND_MESSAGE, &fields, body.as_bytes()).await.unwrap()
}

/// How many messages a queue ever had.
async fn offset(broker: &str, topic: &str) -> String {
    const GET_MAX_OFFSET: i32 = 30;
    let fields = [("topic", topic), ("queueId", "0")];
    let answer = call(broker, GET_MAX_OFFSET, &fields, &[]).await.unwrap();
    assert_eq!(answer.code, code::SUCCESS, "{answer:?}");
    answer.fields["offset"].clone()
}

async fn pop(broker: &str, topic: &str, group: &str) -> Answer {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = now.as_millis().to_string();
    let fields = [
        ("consumerGroup", group),
        ("topic", topic),
        ("queueId", "-1"),
        ("maxMsgNums", "32"),
        ("invisibleTime", "60000"),
        ("pollTime", "5000"),
        ("bornTime", &now),
        ("initMode", "0"),
        ("expType", "TAG"),
        ("exp", "*"),
        ("order", "false"),
    ];
    call(broker, code::POP_MESSAGE, &fields, &[]).await.unwrap()
}

/// Whether the address of something that listens is on loopback, and whose it is, from `ss`.
fn listening() -> Vec<(String, String)> {
    let output = std::process::Command::new("ss").args(["-ltnpH"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace().skip(3);
        (words.next().unwrap().to_owned(), words.last().unwrap_or_default().to_owned())
    };
    text.lines().map(line).collect()
}

/// Messages that a broker confirmed are there after a SIGKILL: the page cache outlives it.
#[tokio::test]
async fn it_listens_on_loopback_and_keeps_messages_over_a_kill() {
    let mut server = RocketMq::start(Setup::default()).await.unwrap();
    let broker = server.brokers().remove(0);
    for id in server.ids() {
        let own = listening().into_iter().filter(|(_, who)| who.contains(&format!("pid={id},")));
        let own: Vec<_> = own.map(|(address, _)| address).collect();
        assert!(!own.is_empty());
        assert!(own.iter().all(|address| address.contains("127.0.0.1")), "{own:?}");
    }
    assert_eq!(send(&broker, "unknown", "a").await.code, code::TOPIC_NOT_EXIST);
    server.create_topic("top", 1, TopicKind::Normal).await.unwrap();
    server.create_group("group", false).await.unwrap();
    assert_eq!(pop(&broker, "top", "unknown").await.code, code::SUBSCRIPTION_GROUP_NOT_EXIST);
    for number in 0..20 {
        let answer = send(&broker, "top", &format!("body {number}")).await;
        assert_eq!(answer.code, code::SUCCESS, "{answer:?}");
    }
    server.kill_broker(0);
    assert!(call(&broker, code::GET_BROKER_RUNTIME_INFO, &[], &[]).await.is_err());
    server.restart_broker(0).await.unwrap();
    assert_eq!(offset(&broker, "top").await, "20");
    let popped = pop(&broker, "top", "group").await;
    assert_eq!(popped.code, code::SUCCESS, "{popped:?}");
    let body = String::from_utf8_lossy(&popped.body);
    assert!((0..20).all(|number| body.contains(&format!("body {number}"))));

    server.restart_namesrv().await.unwrap();
    assert_eq!(send(&broker, "top", "after").await.code, code::SUCCESS);
}

/// Neither process must outlive a test process that could not clean up.
#[tokio::test]
async fn both_die_with_a_process_that_was_killed() {
    let mut starter = tokio::process::Command::new(env!("CARGO_BIN_EXE_pumphouse-test-brokers"))
        .args(["start", "rocketmq"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(starter.stdout.take().unwrap());
    let mut namesrv = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut namesrv).await.unwrap();
    let namesrv = namesrv.trim();
    let route = [("topic", "broker-0")];
    let answer = call(namesrv, code::GET_ROUTEINFO_BY_TOPIC, &route, &[]).await.unwrap();
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    let (_, broker) = body.split_once("\"127.0.0.1:").unwrap();
    let broker = format!("127.0.0.1:{}", broker.split_once('"').unwrap().0);
    assert_eq!(send(&broker, "made-by-itself", "a").await.code, code::SUCCESS);
    starter.kill().await.unwrap();
    let begin = Instant::now();
    for server in [namesrv, &broker] {
        while call(server, code::GET_BROKER_RUNTIME_INFO, &[], &[]).await.is_ok() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{server} still answers");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The error must show what the server itself says.
#[tokio::test]
async fn a_broker_that_does_not_start_says_why() {
    let setup = Setup::default().setting("brokerRole", "SLAVE").setting("brokerId", "0");
    let error = RocketMq::start(setup).await.unwrap_err().to_string();
    assert!(
        error.contains("broker-0") && error.contains("Slave's brokerId must be > 0"),
        "{error}"
    );
}
