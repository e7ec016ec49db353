use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pumphouse_contract::ports::{Action, Ask, Settlement, Source, Unsettled};
use pumphouse_contract::{Count, Delivery};
use pumphouse_rocketmq::{Kind, Provision, Rocketmq, RocketmqSettings, SourceSpec, Timeouts};
use pumphouse_test_brokers::remoting::{call, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

pub(crate) use crate::shared::own;

/// How long a message that is there may take to come, a redelivery's round of the broker included.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A lease that nobody waits for.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const WAIT: Duration = Duration::from_secs(2);

/// The one broker of the tests that do not stop it.
pub(crate) async fn server() -> MutexGuard<'static, RocketMq> {
    static SERVER: OnceCell<Mutex<RocketMq>> = OnceCell::const_new();
    let start = || async { Mutex::new(own(Setup::default()).await) };
    SERVER.get_or_init(start).await.lock().await
}

/// With the limits that a host has, which some of the tests measure.
pub(crate) fn settings(namesrv: &str) -> RocketmqSettings {
    RocketmqSettings { timeouts: Timeouts::default(), ..crate::shared::settings(namesrv) }
}

/// A topic with a group of the same name, and who reads it.
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) rocketmq: Rocketmq,
    pub(crate) source: Arc<dyn Source>,
    /// Where messages are sent to.
    pub(crate) brokers: Vec<String>,
}

impl Room {
    /// On the broker that all share.
    pub(crate) async fn open(kind: Kind) -> Self {
        let server = server().await;
        let namesrv = server.namesrv();
        Self::on(&server, &namesrv, kind).await
    }

    /// On a server of one's own, perhaps by another name server.
    pub(crate) async fn on(server: &RocketMq, namesrv: &str, kind: Kind) -> Self {
        Self::with(server, settings(namesrv), kind, 2).await
    }

    pub(crate) async fn with(
        server: &RocketMq,
        settings: RocketmqSettings,
        kind: Kind,
        queues: u32,
    ) -> Self {
        let name = crate::shared::unique("room");
        let is_fifo = kind == Kind::Fifo;
        let topic = if is_fifo { TopicKind::Fifo } else { TopicKind::Normal };
        server.create_topic(&name, queues, topic).await.expect("a topic");
        server.create_group(&name, is_fifo).await.expect("a group");
        wait_for_route(server, &name).await;
        let rocketmq = Rocketmq::connect(settings).await.expect("a connection");
        let source = open(&rocketmq, &name, kind).await;
        Self { name, rocketmq, source, brokers: server.brokers() }
    }

    /// Sends to a queue of the first broker.
    pub(crate) async fn send(&self, body: &str) {
        self.send_to(0, body).await;
    }

    pub(crate) async fn send_to(&self, broker: usize, body: &str) {
        let id = format!("UNIQ_KEY\u{1}{body}\u{2}");
        send(&self.brokers[broker], &self.name, 0, &id, body.as_bytes(), 0).await;
    }

    pub(crate) async fn one(&self) -> Delivery {
        one(self.source.as_ref(), LONG).await
    }

    pub(crate) async fn ack(&self, delivery: &Delivery) {
        settle(self.source.as_ref(), delivery, Action::Ack).await.expect("an acknowledgement");
    }

    pub(crate) async fn release(&self, delivery: &Delivery, after: Duration) {
        let release = Action::Release(after);
        settle(self.source.as_ref(), delivery, release).await.expect("a release");
    }

    /// Whether nothing comes for so long.
    pub(crate) async fn is_empty_for(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let wait = until.saturating_duration_since(Instant::now()).min(WAIT);
            if !self.source.receive(ask(32, wait, LONG)).await.expect("a receive").is_empty() {
                return false;
            }
        }
        true
    }
}

/// The name server hears of a topic a moment after the broker.
async fn wait_for_route(server: &RocketMq, topic: &str) {
    let until = Instant::now() + SOON;
    let (brokers, namesrv, fields) = (server.brokers(), server.namesrv(), [("topic", topic)]);
    while Instant::now() < until {
        let answer = call(&namesrv, code::GET_ROUTEINFO_BY_TOPIC, &fields, &[]).await;
        let body = answer.expect("an answer").body;
        let text = String::from_utf8_lossy(&body);
        if brokers.iter().all(|broker| text.contains(broker)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no route");
}

pub(crate) fn spec(name: &str, kind: Kind) -> SourceSpec {
    SourceSpec { kind, ..SourceSpec::new(name, name, Provision::Assume) }
}

pub(crate) async fn open(rocketmq: &Rocketmq, name: &str, kind: Kind) -> Arc<dyn Source> {
    rocketmq.source(spec(name, kind)).await.expect("a source")
}

/// Sends as a foreign program does, with the properties as they are on the wire.
pub(crate) async fn send(
    broker: &str,
    topic: &str,
    queue: u32,
    properties: &str,
    body: &[u8],
    sys_flag: u32,
) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let (now, queue, flag) = (now.to_string(), queue.to_string(), sys_flag.to_string());
    let fields = [
        ("producerGroup", "foreign"),
        ("topic", topic),
        ("defaultTopic", "TBW102"),
        ("defaultTopicQueueNums", "4"),
        ("queueId", &queue),
        ("sysFlag", &flag),
        ("bornTimestamp", &now),
        ("flag", "0"),
        ("properties", properties),
        ("reconsumeTimes", "0"),
        ("unitMode", "false"),
        ("batch", "false"),
    ];
    let until = Instant::now() + SOON;
    loop {
        let answer = call(broker, code::SEND_MESSAGE, &fields, body).await.expect("an answer");
        // A broker on a machine with much to do sends some away, who may try again.
        if answer.code != code::SYSTEM_BUSY || Instant::now() > until {
            assert_eq!(answer.code, code::SUCCESS, "{:?}", answer.remark);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) fn ask(max: usize, wait: Duration, lease: Duration) -> Ask {
    Ask { max, wait, lease }
}

/// The next message, which must come soon.
pub(crate) async fn one(source: &dyn Source, lease: Duration) -> Delivery {
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        if let Some(got) = source.receive(ask(1, WAIT, lease)).await.expect("a receive").pop() {
            return got;
        }
    }
    panic!("no message came");
}

/// The next message, and how long it took to come. While the broker is away, asks again.
pub(crate) async fn patiently(source: &dyn Source, lease: Duration, limit: Duration) -> Delivery {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        match source.receive(ask(1, WAIT, lease)).await {
            Ok(mut got) if !got.is_empty() => return got.remove(0),
            Ok(_) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
    panic!("no message came");
}

pub(crate) async fn settle(
    source: &dyn Source,
    delivery: &Delivery,
    action: Action,
) -> Result<(), Unsettled> {
    let settlement = Settlement { receipt: delivery.receipt.clone(), action };
    source.settle(vec![settlement]).await.pop().expect("an answer")
}

pub(crate) fn count(delivery: &Delivery) -> Count {
    delivery.counted.count()
}

pub(crate) fn body(delivery: &Delivery) -> &str {
    std::str::from_utf8(&delivery.message.body).expect("a text")
}
