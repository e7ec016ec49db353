//! Google Pub/Sub, pulled or streamed, with and without ordering keys.
//!
//! Each queue of a channel is a topic and a subscription of one name. Hosts reach the emulator through a proxy of the
//! trial's own, which counts what they call and loses what a case wants lost. The case itself looks at queues past the
//! proxy, and sends as a program that is not ours does.
//!
//! Pub/Sub counts deliveries only where a subscription has a dead-letter policy, so every queue has one; its limit is
//! far beyond what a case needs, unless the case asks for another or for none.

mod backlog;
mod foreign;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::ReceivedMessage;
use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Counted, Outgoing};
use pumphouse_pubsub::{Mode, NativeDeadLetter, Provision, PubsubSettings, SinkSpec, SourceSpec};
use pumphouse_test_brokers::grpc::{GrpcProxy, On, code};
use tokio::sync::Mutex;

use super::{Fault, Foreign, Names, Operations, Place, QueueFacts, Wants, one_less};
use crate::allocations;
use crate::cell::Configuration;
use crate::world::World;
use backlog::Backlog;
use foreign::Subscribed;

const PROJECT: &str = "conformance";

/// The limit of a policy that is there so that deliveries are counted, and where it would move messages to.
const BEYOND: u32 = 100;
const BEYOND_TOPIC: &str = "beyond";

/// The acknowledgement deadline of most queues: longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// The shortest that there is.
const BRIEF: Duration = Duration::from_secs(10);

/// Calls at once of a host, and more than that.
const CONCURRENCY: usize = 4;

/// One trial's way to the emulator.
pub(crate) struct Pubsub {
    world: Arc<World>,
    configuration: Configuration,
    endpoint: String,
    proxy: GrpcProxy,
    /// What hosts use; a restart makes another.
    hosts: Mutex<pumphouse_pubsub::Pubsub>,
    /// What the case uses.
    own: pumphouse_pubsub::Pubsub,
    /// How its queues were made.
    made: std::sync::Mutex<BTreeMap<String, Made>>,
}

#[derive(Debug, Clone, Copy)]
struct Made {
    /// The limit of its policy.
    limit: Option<u32>,
    lease: Duration,
}

impl Pubsub {
    pub(crate) async fn new(world: &Arc<World>, configuration: Configuration) -> Result<Self> {
        let endpoint = world.emulator().await?;
        let proxy = GrpcProxy::start(&endpoint).await?;
        let hosts = Mutex::new(connect(world, proxy.endpoint()).await?);
        let own = connect(world, endpoint.clone()).await?;
        let made = std::sync::Mutex::default();
        foreign::make_topic(&endpoint, BEYOND_TOPIC).await?;
        Ok(Self { world: world.clone(), configuration, endpoint, proxy, hosts, own, made })
    }

    fn spec(&self, queue: &str, provision: Provision) -> SourceSpec {
        let mode = if self.configuration.is_stream() { Mode::Stream } else { Mode::Pull };
        SourceSpec {
            topic: Some(queue.to_owned()),
            mode,
            ordered: self.configuration.is_pubsub_ordered(),
            concurrency: CONCURRENCY,
            ..SourceSpec::new(queue, provision)
        }
    }

    pub(crate) async fn create(&self, names: &Names, wants: Wants) -> Result<()> {
        let source = names.of(Place::Source);
        let lease = if wants.brief { BRIEF } else { LONG };
        match wants.native {
            Some(limit) => self.make_limited(&source, &names.of(Place::Native), limit).await?,
            None => self.make(&source, !wants.uncounted, lease).await?,
        }
        for place in [Place::DeadLetter, Place::Invalid] {
            self.make(&names.of(place), true, LONG).await?;
        }
        Ok(())
    }

    /// As an operator makes it that hosts publish to already. A topic is there before its subscriptions: what is
    /// published in between would be counted by nobody, so hosts don't find it yet.
    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        let making = Arc::new(AtomicBool::new(true));
        let still = making.clone();
        let published = names(queue);
        self.proxy
            .on(self.operations().publish)
            .when(move |request| still.load(Ordering::SeqCst) && published(request))
            .status(code::NOT_FOUND, "Topic not found");
        self.make(queue, true, LONG).await?;
        making.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// As the transport makes it, with the policy.
    async fn make_limited(&self, queue: &str, native: &str, limit: u32) -> Result<()> {
        let native = policy(native, limit);
        let topic = native.dead_letter.clone();
        let spec =
            SourceSpec { native: Some(native), lease: LONG, ..self.spec(queue, Provision::Create) };
        self.own.source(spec).await?;
        self.remember(queue, Made { limit: Some(limit), lease: LONG });
        backlog::watch(&self.endpoint, queue).await?;
        backlog::watch(&self.endpoint, &topic).await
    }

    /// As a program makes it that is not ours, which is far quicker.
    async fn make(&self, queue: &str, counted: bool, lease: Duration) -> Result<()> {
        let limit = counted.then_some(BEYOND);
        let policy = limit.map(|limit| (BEYOND_TOPIC, limit));
        let ordered = self.configuration.is_pubsub_ordered();
        foreign::make(&self.endpoint, queue, Subscribed { ordered, lease, policy }).await?;
        self.remember(queue, Made { limit, lease });
        backlog::watch(&self.endpoint, queue).await
    }

    fn made(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, queue: &str, made: Made) {
        self.made().insert(queue.to_owned(), made);
    }

    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        foreign::exists(&self.endpoint, queue).await
    }

    /// With what a host learns that checks its subscription, without the time that the check takes.
    fn known(&self, queue: &str) -> SourceSpec {
        let made = self.made().get(queue).copied();
        let Made { limit, lease } = made.unwrap_or(Made { limit: None, lease: LONG });
        let native = limit.map(|limit| policy(BEYOND_TOPIC, limit));
        SourceSpec { native, lease, ..self.spec(queue, Provision::Assume) }
    }

    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        let spec = self.known(&names.of(Place::Source));
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, ..self.known(queue) };
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    /// By pulls on every row, which take no more than the case asks for.
    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, mode: Mode::Pull, ..self.known(queue) };
        Ok(self.own.source(spec).await?)
    }

    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        let spec = SinkSpec::new(queue, Provision::Assume);
        Ok(self.hosts.lock().await.sink(spec).await?)
    }

    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(Backlog::new(&self.endpoint, queue)))
    }

    pub(crate) async fn facts(&self, names: &Names) -> Result<QueueFacts> {
        let spec = self.spec(&names.of(Place::Source), Provision::Assume);
        let found = self.own.facts(&spec).await?;
        Ok(QueueFacts {
            native_limit: found.native_limit,
            retention: found.retention,
            ..QueueFacts::default()
        })
    }

    /// Other connections, as another process would have.
    pub(crate) async fn restart(&self) -> Result<()> {
        *self.hosts.lock().await = connect(&self.world, self.proxy.endpoint()).await?;
        Ok(())
    }

    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        foreign::send(&self.endpoint, &names.of(Place::Source), message).await
    }

    pub(crate) async fn foreign(&self, queue: &str) -> Result<Foreign> {
        foreign::read(&self.endpoint, queue).await
    }

    /// The emulator ends with the run, and nobody finds the queues of a trial that is over.
    pub(crate) async fn close(&self) {}

    /// What hosts called so far, by operation.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        self.proxy.counts()
    }

    pub(crate) fn operations(&self) -> Operations {
        let stream = self.configuration.is_stream();
        Operations {
            receive: if stream { "StreamingPull" } else { "Pull" },
            delivery: if stream { "none" } else { "1 Pull" },
            release: "ModifyAckDeadline",
            ack: "Acknowledge",
            publish: "Publish",
        }
    }

    /// The next calls about a queue go wrong.
    pub(crate) fn spoil(&self, fault: Fault, queue: &str, times: u64) {
        let Operations { receive, release, ack, publish, .. } = self.operations();
        let on = |operation| self.on(operation, queue);
        match fault {
            Fault::Publish => on(publish).times(times).drop_before(),
            Fault::Confirmation => on(publish).times(times).drop_after(),
            Fault::Ack => on(ack).times(times).drop_before(),
            Fault::Release => on(release).times(times).status(code::UNAVAILABLE, "scripted"),
            Fault::Answer => {
                let left = AtomicU64::new(times);
                // An answer without messages has no bytes.
                let lost = move |answer: &[u8]| !answer.is_empty() && one_less(&left);
                on(receive)
                    .rewrite(move |_, answer| if lost(&answer) { Vec::new() } else { answer })
            }
        };
    }

    /// A rule for what hosts call about a queue.
    fn on(&self, operation: &str, queue: &str) -> On<'_> {
        self.proxy.on(operation).when(names(queue))
    }
}

/// Whether a request is about a topic or a subscription: their full name ends in the queue's.
fn names(queue: &str) -> impl Fn(&[u8]) -> bool + Send + Sync + 'static {
    let name = format!("s/{queue}").into_bytes();
    move |request| request.windows(name.len()).any(|part| part == name)
}

fn policy(native: &str, limit: u32) -> NativeDeadLetter {
    // With members that are named, no other service is asked for those of the project.
    let member = Some("serviceAccount:pubsub@conformance.test".to_owned());
    NativeDeadLetter {
        max_delivery_attempts: limit,
        dead_letter: native.to_owned(),
        publisher_member: member.clone(),
        subscriber_member: member,
    }
}

async fn connect(world: &World, endpoint: String) -> Result<pumphouse_pubsub::Pubsub> {
    let settings = PubsubSettings {
        project: Some(PROJECT.to_owned()),
        endpoint: Some(endpoint),
        ..PubsubSettings::new(world.clock.clone())
    };
    Ok(pumphouse_pubsub::Pubsub::connect(settings).await?)
}

/// How often reading the count of a message of Pub/Sub allocates, as the transport does it.
pub(super) fn allocations_of_counting(attempt: i32) -> Result<u64> {
    let message = ReceivedMessage { delivery_attempt: attempt, ..ReceivedMessage::default() };
    let (counted, allocated) = allocations::of(|| pumphouse_pubsub::counted(&message));
    ensure!(counted != Counted::Unreported, "the attempt {attempt} was not read");
    Ok(allocated)
}
