//! Apache RocketMQ 5, normal topics and FIFO topics.
//!
//! Each queue of a channel is a topic and a consumer group of one name. Hosts reach name server and broker through a
//! proxy of the trial's own, which counts what they call and loses what a case wants lost. The case itself looks at
//! queues past the proxy, and sends as a program that is not ours does.
//!
//! A FIFO topic is in order by queue, so messages of two groups wait for each other where both are on one queue. Names
//! that a case sends under without saying that they may wait fall on queues of their own: with eight queues `a`, `b`
//! and `c` are on 1, 2 and 3, and eight names that end in consecutive digits are on eight.

mod backlog;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::ports::{BoxFuture, Sink, Source};
use pumphouse_contract::{Clock, Counted, Outgoing};
use pumphouse_rocketmq::{Kind, Provision, RocketmqSettings, SinkSpec, SourceSpec};
use pumphouse_test_brokers::remoting::{Answer, RemotingProxy, Request, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};
use tokio::sync::Mutex;

use super::{Fault, Foreign, Names, Operations, Place, QueueFacts, Wants};
use crate::allocations;
use crate::cell::Configuration;
use crate::world::World;
use backlog::{Backlog, Log};
use wire::Target;

/// The queues of a topic.
const QUEUES: u32 = 8;

/// Where the broker keeps its check points.
const REVIVE_QUEUES: u32 = 2;

/// How long a request may wait in the broker, in milliseconds.
const SLOW: &str = "30000";

/// The lease that a source is made for. Each receive has its own.
const LEASE: Duration = Duration::from_secs(60);

/// What hosts call now and then, whatever messages there are, and what they ask a name server.
const BESIDE: [i32; 4] = [
    code::HEART_BEAT,
    code::UNREGISTER_CLIENT,
    code::GET_ROUTEINFO_BY_TOPIC,
    code::GET_BROKER_CLUSTER_INFO,
];

/// The server, and what all trials share of it.
pub(crate) struct Service {
    server: RocketMq,
    broker: String,
    /// What cases use.
    own: pumphouse_rocketmq::Rocketmq,
    log: Arc<Log>,
}

impl Service {
    /// The broker looks for lapsed leases more often than by default; that it waits two seconds beyond each is its own.
    /// It refuses nothing for being slow, as it would on a busy machine after 200 ms.
    pub(crate) async fn start(clock: Arc<dyn Clock>) -> Result<Arc<Self>> {
        let setup = Setup::default()
            .setting("reviveQueueNum", &REVIVE_QUEUES.to_string())
            .setting("reviveInterval", "100")
            .setting("reviveMaxSlow", "1")
            .setting("waitTimeMillsInSendQueue", SLOW)
            .setting("waitTimeMillsInPullQueue", SLOW)
            .setting("waitTimeMillsInAckQueue", SLOW)
            .setting("waitTimeMillsInAdminBrokerQueue", SLOW)
            .setting("osPageCacheBusyTimeOutMills", SLOW);
        let server = RocketMq::start(setup).await?;
        let broker = server.brokers().into_iter().next().context("a broker runs")?;
        server.create_group(wire::LOOKER, false).await?;
        let own = connect(server.namesrv(), clock).await?;
        let log = Arc::new(Log::new(&broker, REVIVE_QUEUES));
        Ok(Arc::new(Self { server, broker, own, log }))
    }
}

async fn connect(
    name_server: String,
    clock: Arc<dyn Clock>,
) -> Result<pumphouse_rocketmq::Rocketmq> {
    let settings = RocketmqSettings::new(vec![name_server], clock);
    Ok(pumphouse_rocketmq::Rocketmq::connect(settings).await?)
}

/// The client's own future is too deep for the compiler to be part of others.
fn ended(client: &pumphouse_rocketmq::Rocketmq) -> BoxFuture<'_, ()> {
    Box::pin(client.close())
}

/// One trial's way to the server.
pub(crate) struct Rocketmq {
    world: Arc<World>,
    service: Arc<Service>,
    configuration: Configuration,
    proxy: RemotingProxy,
    /// What hosts use; a restart makes another.
    hosts: Mutex<pumphouse_rocketmq::Rocketmq>,
    /// How many answers with messages are to be lost, by topic.
    lost: Arc<Lock<BTreeMap<String, u64>>>,
}

impl Rocketmq {
    pub(crate) const OPERATIONS: Operations = Operations {
        receive: "POP_MESSAGE",
        delivery: "1 POP_MESSAGE",
        release: "CHANGE_MESSAGE_INVISIBLETIME",
        ack: "ACK_MESSAGE",
        publish: "SEND_MESSAGE_V2",
    };

    pub(crate) async fn new(world: &Arc<World>, configuration: Configuration) -> Result<Self> {
        let service = world.rocketmq().await?;
        let proxy = RemotingProxy::start(&service.server).await?;
        let lost = Arc::<Lock<BTreeMap<String, u64>>>::default();
        // A poll is judged when it begins, so the rule is there before the first.
        let losing = lost.clone();
        proxy.on(code::POP_MESSAGE).rewrite(move |request, answer| lose(&losing, request, answer));
        let hosts = Mutex::new(connect(proxy.namesrv(), world.clock.clone()).await?);
        Ok(Self { world: world.clone(), service, configuration, proxy, hosts, lost })
    }

    fn is_fifo(&self) -> bool {
        self.configuration == Configuration::RocketmqFifo
    }

    fn kind(&self) -> Kind {
        if self.is_fifo() { Kind::Fifo } else { Kind::Normal }
    }

    fn spec(&self, queue: &str) -> SourceSpec {
        SourceSpec {
            kind: self.kind(),
            queues: QUEUES,
            lease: LEASE,
            ..SourceSpec::new(queue, queue, Provision::Assume)
        }
    }

    pub(crate) async fn create(&self, names: &Names, wants: Wants) -> Result<()> {
        let source = names.of(Place::Source);
        match wants.native {
            Some(limit) => {
                self.make_topic(&source).await?;
                wire::make_group(&self.service.broker, &source, self.is_fifo(), limit).await?;
            }
            None => self.create_queue(&source).await?,
        }
        for place in [Place::DeadLetter, Place::Invalid] {
            self.create_queue(&names.of(place)).await?;
        }
        Ok(())
    }

    async fn make_topic(&self, topic: &str) -> Result<()> {
        let kind = if self.is_fifo() { TopicKind::Fifo } else { TopicKind::Normal };
        Ok(self.service.server.create_topic(topic, QUEUES, kind).await?)
    }

    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        self.service.server.create_group(queue, self.is_fifo()).await?;
        self.make_topic(queue).await
    }

    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        wire::exists(&self.service.broker, queue).await
    }

    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        let spec = self.spec(&names.of(Place::Source));
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, ..self.spec(queue) };
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, ..self.spec(queue) };
        Ok(self.service.own.source(spec).await?)
    }

    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        let spec = SinkSpec {
            kind: self.kind(),
            queues: QUEUES,
            ..SinkSpec::new(queue, Provision::Assume)
        };
        Ok(self.hosts.lock().await.sink(spec).await?)
    }

    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(Backlog::new(&self.service.log, queue, QUEUES, self.is_fifo())))
    }

    pub(crate) async fn facts(&self, names: &Names) -> Result<QueueFacts> {
        let found = self.service.own.facts(&self.spec(&names.of(Place::Source))).await?;
        ensure!(found.kind == Some(self.kind()), "the topic is said to be {:?}", found.kind);
        Ok(QueueFacts { advisory_limit: found.retry_limit, ..QueueFacts::default() })
    }

    /// Another client with other connections, as another process would have.
    pub(crate) async fn restart(&self) -> Result<()> {
        let mut hosts = self.hosts.lock().await;
        ended(&hosts).await;
        *hosts = connect(self.proxy.namesrv(), self.world.clock.clone()).await?;
        Ok(())
    }

    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        self.send_as(names, message, wire::PLAIN).await
    }

    /// As if the body were compressed.
    pub(crate) async fn send_compressed(&self, names: &Names, message: Outgoing) -> Result<()> {
        self.send_as(names, message, wire::COMPRESSED).await
    }

    async fn send_as(&self, names: &Names, message: Outgoing, flag: &str) -> Result<()> {
        let topic = &names.of(Place::Source);
        let target = Target { topic, queues: QUEUES, fifo: self.is_fifo(), flag };
        wire::send(&self.service.broker, target, message).await
    }

    /// Whether the broker moved a message of the source away by itself: to a topic that it makes then.
    pub(crate) async fn moved(&self, names: &Names) -> Result<bool> {
        self.exists(&format!("%DLQ%{}", names.of(Place::Source))).await
    }

    /// The one message of a topic.
    pub(crate) async fn foreign(&self, queue: &str) -> Result<Foreign> {
        for number in 0..QUEUES {
            let messages = wire::pull(&self.service.broker, queue, number, 0).await?;
            if let Some(message) = messages.first() {
                let body = String::from_utf8(message.body.to_vec())?;
                return Ok(Foreign { body, metadata: wire::metadata(message)? });
            }
        }
        anyhow::bail!("the topic is empty")
    }

    /// The server ends with the run, and nobody finds the queues of a trial that is over. The client has threads.
    pub(crate) async fn close(&self) {
        ended(&*self.hosts.lock().await).await;
    }

    /// What hosts called so far about messages, by operation.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        let counts = self.proxy.counts().into_iter();
        counts.filter(|(code, _)| !BESIDE.contains(code)).map(|(code, n)| (name(code), n)).collect()
    }

    /// The next calls about a queue go wrong.
    pub(crate) fn spoil(&self, fault: Fault, queue: &str, times: u64) {
        let on = |code| {
            let queue = queue.to_owned();
            self.proxy.on(code).times(times).when(move |request| is_about(request, &queue))
        };
        match fault {
            Fault::Publish => {
                drop(on(code::SEND_MESSAGE_V2).answer(code::SYSTEM_ERROR, "scripted"))
            }
            Fault::Confirmation => drop(on(code::SEND_MESSAGE_V2).drop_after()),
            Fault::Ack => drop(on(code::ACK_MESSAGE).drop_before()),
            Fault::Release => {
                let release = on(code::CHANGE_MESSAGE_INVISIBLETIME);
                drop(release.answer(code::SYSTEM_ERROR, "scripted"));
            }
            Fault::Answer => {
                let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.insert(queue.to_owned(), times);
            }
        }
    }
}

/// The names that RocketMQ itself has for these.
fn name(code: i32) -> String {
    match code {
        code::POP_MESSAGE => "POP_MESSAGE".to_owned(),
        code::ACK_MESSAGE => "ACK_MESSAGE".to_owned(),
        code::CHANGE_MESSAGE_INVISIBLETIME => "CHANGE_MESSAGE_INVISIBLETIME".to_owned(),
        code::SEND_MESSAGE => "SEND_MESSAGE".to_owned(),
        code::SEND_MESSAGE_V2 => "SEND_MESSAGE_V2".to_owned(),
        other => format!("request {other}"),
    }
}

/// Whether a request names that topic, or its retry topic. A send of version 2 has names of one letter.
fn is_about(request: &Request, queue: &str) -> bool {
    let topic = request.field("topic").or_else(|| request.field("b")).unwrap_or_default();
    topic == queue || topic.strip_prefix("%RETRY%").is_some_and(|it| it.starts_with(queue))
}

/// An answer with messages becomes one without.
fn lose(lost: &Lock<BTreeMap<String, u64>>, request: &Request, answer: &mut Answer) {
    let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
    let left = request.field("topic").and_then(|topic| lost.get_mut(topic));
    let Some(left) = left.filter(|left| **left > 0 && !answer.body.is_empty()) else { return };
    *left -= 1;
    answer.code = code::POLLING_TIMEOUT;
    answer.body.clear();
    answer.fields.clear();
}

/// How often reading the count of a message of RocketMQ allocates, as the transport does it.
pub(super) fn allocations_of_counting(reconsumed: i32) -> Result<u64> {
    let (counted, allocated) = allocations::of(|| pumphouse_rocketmq::counted(reconsumed));
    ensure!(counted != Counted::Unreported, "the number {reconsumed} was not read");
    Ok(allocated)
}
