//! Which queue of a topic a message goes to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_client_rust::JavaHashCode;
use rocketmq_protocol::protocol::route::topic_route_data::TopicRouteData;
use tokio::time::Instant;

use crate::calls::{Fault, Meaning, bounded, millis};
use crate::resting::{Resting, reach};
use crate::routes::{AGAIN, FRESH, MASTER, PATIENCE};
use crate::{Rocketmq, request};

pub(crate) const WRITABLE: u32 = 2;

/// One queue of a topic on one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) broker: CheetahString,
    /// `host:port`.
    pub(crate) address: CheetahString,
    pub(crate) number: i32,
}

/// The queues that a topic can be written to, as the name server last said.
pub(crate) struct Queues {
    rocketmq: Rocketmq,
    /// As it is on the wire.
    topic: CheetahString,
    known: Mutex<Known>,
    /// Held while the name server is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
    next: AtomicUsize,
}

#[derive(Default)]
struct Known {
    queues: Arc<[Queue]>,
    /// When the name server is to be asked again; none for at once.
    due: Option<Instant>,
    resting: Resting,
}

impl Queues {
    pub(crate) fn new(rocketmq: &Rocketmq, topic: CheetahString) -> Self {
        Self {
            rocketmq: rocketmq.clone(),
            topic,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            // Hosts that start together don't begin with the same queue.
            next: AtomicUsize::new(rand::random::<u16>().into()),
        }
    }

    /// The queue of a message group: Java's hash of it modulo the queues, in the order of the brokers' names and
    /// their numbers, as `SelectMessageQueueByHash` of the Java client chooses. It is another where the route has
    /// other queues, as once a broker is gone.
    pub(crate) async fn of_group(&self, group: &str) -> Result<Queue, Fault> {
        let queues = self.current().await?;
        let hash = usize::try_from(i64::from(group.java_hash_code()).unsigned_abs());
        let at = hash.unwrap_or_default().checked_rem(queues.len());
        at.and_then(|at| queues.get(at).cloned()).ok_or_else(unwritable)
    }

    /// The next queue, one after the other over all brokers; those that failed a moment ago are passed over where
    /// there are others.
    pub(crate) async fn next(&self) -> Result<Queue, Fault> {
        let queues = self.current().await?;
        let known = self.known();
        let awake = known.resting.awake(&queues, |queue| &queue.broker);
        let at = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(awake.len());
        at.and_then(|at| awake.get(at).map(|&queue| queue.clone())).ok_or_else(unwritable)
    }

    /// Takes note that a publish to a broker failed, which asks for the route anew.
    pub(crate) fn failed(&self, queue: &Queue, fault: &Fault) {
        let mut known = self.known();
        known.due = None;
        if matches!(fault.meaning, Meaning::Unavailable | Meaning::Busy | Meaning::Denied) {
            known.resting.add(&queue.broker);
        }
    }

    /// Takes note that a broker answered.
    pub(crate) fn answered(&self, queue: &Queue) {
        self.known().resting.remove(&queue.broker);
    }

    /// Whether a broker that failed can be connected to again. One that did not fail is not tried.
    pub(crate) async fn reach(&self, queue: &Queue) -> Result<(), Fault> {
        let failed = self.known().resting.has(&queue.broker);
        if failed { reach(&queue.address).await } else { Ok(()) }
    }

    async fn current(&self) -> Result<Arc<[Queue]>, Fault> {
        if let Some(queues) = self.fresh() {
            return Ok(queues);
        }
        let known = Arc::clone(&self.known().queues);
        let whole = self.rocketmq.timeouts.publish;
        let limit = if known.is_empty() { whole } else { PATIENCE.min(whole / 2) };
        let Ok(_asking) = tokio::time::timeout(limit, self.asking.lock()).await else {
            return Err(Fault::unavailable("the name server does not answer"));
        };
        if let Some(queues) = self.fresh() {
            return Ok(queues);
        }
        match self.question(limit, &known).await {
            Ok(queues) => {
                let queues: Arc<[Queue]> = queues.into();
                let mut known = self.known();
                known.due = Some(Instant::now() + FRESH);
                known.queues = Arc::clone(&queues);
                Ok(queues)
            }
            // A broker may be back where it was, before the name server knows.
            Err(fault) if fault.meaning != Meaning::Missing && !known.is_empty() => {
                self.known().due = Some(Instant::now() + AGAIN);
                Ok(known)
            }
            Err(fault) => {
                self.known().queues = Arc::default();
                Err(fault)
            }
        }
    }

    fn fresh(&self) -> Option<Arc<[Queue]>> {
        let known = self.known();
        let fresh = known.due.is_some_and(|due| due > Instant::now()) && !known.queues.is_empty();
        fresh.then(|| Arc::clone(&known.queues))
    }

    async fn question(&self, limit: Duration, before: &[Queue]) -> Result<Vec<Queue>, Fault> {
        match request::route(&self.rocketmq, &self.topic, limit).await? {
            Some(route) => writable(&route),
            None => Err(self.absent(limit, before).await),
        }
    }

    /// Whether a topic without a route is missing: a name server forgets the topics of a broker that is gone.
    async fn absent(&self, limit: Duration, before: &[Queue]) -> Fault {
        let there = match brokers(&self.rocketmq, limit).await {
            Ok(there) => there,
            Err(fault) => return fault,
        };
        let gone = before.iter().find(|queue| !there.contains(&queue.broker));
        match gone {
            Some(queue) => Fault::unavailable(format!("broker {} is away", queue.broker)),
            None if there.is_empty() => Fault::unavailable("no broker is known to the name server"),
            None => Fault {
                meaning: Meaning::Missing,
                text: format!("the name server has no topic {}", self.topic),
                code: None,
            },
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of the brokers that the name server knows.
pub(crate) async fn brokers(
    rocketmq: &Rocketmq,
    limit: Duration,
) -> Result<Vec<CheetahString>, Fault> {
    let handle = rocketmq.lease()?;
    let cluster = bounded(limit, handle.broker_cluster_info(millis(limit))).await?;
    let table = cluster.broker_addr_table.unwrap_or_default();
    Ok(table.into_keys().collect())
}

/// The queues that can be written to, in the order of the Java client.
fn writable(route: &TopicRouteData) -> Result<Vec<Queue>, Fault> {
    let mut data: Vec<_> = route.queue_datas.iter().collect();
    data.retain(|it| it.perm() & WRITABLE != 0 && it.write_queue_nums() > 0);
    if data.is_empty() {
        return Err(unwritable());
    }
    data.sort_by(|one, other| one.broker_name().cmp(other.broker_name()));
    let mut queues = Vec::new();
    for it in data {
        let named = |name: &CheetahString| name == it.broker_name();
        let broker = route.broker_datas.iter().find(|broker| named(broker.broker_name()));
        let Some(address) = broker.and_then(|it| it.broker_addrs().get(&MASTER)) else { continue };
        let count = i32::try_from(it.write_queue_nums()).unwrap_or(i32::MAX);
        queues.extend((0..count).map(|number| Queue {
            broker: it.broker_name().clone(),
            address: address.clone(),
            number,
        }));
    }
    if queues.is_empty() {
        return Err(Fault::unavailable("the masters of its brokers are away"));
    }
    Ok(queues)
}

fn unwritable() -> Fault {
    let text = "it has no queue that can be written to: let the topic be written".to_owned();
    Fault { meaning: Meaning::Refused, text, code: None }
}
