//! Which brokers a topic is read from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_protocol::protocol::route::topic_route_data::TopicRouteData;
use tokio::time::Instant;

use crate::calls::{Fault, Meaning};
use crate::resting::{Resting, reach};
use crate::{Rocketmq, request};

/// How old a route gets before the name server is asked again.
pub(crate) const FRESH: Duration = Duration::from_secs(30);

/// How soon it is asked again where it could not be.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);

/// How long a call waits for a new route while it has an old one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The number of a broker that is no copy of another.
pub(crate) const MASTER: u64 = 0;

const READABLE: u32 = 4;

/// A broker that a topic can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) name: CheetahString,
    /// `host:port`.
    pub(crate) address: CheetahString,
}

/// The route of one topic, as the name server last gave it.
pub(crate) struct Routes {
    rocketmq: Rocketmq,
    /// As it is on the wire.
    topic: CheetahString,
    known: Mutex<Known>,
    /// Held while the name server is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    brokers: Arc<[Broker]>,
    /// When the name server is to be asked again; none where it was never asked.
    due: Option<Instant>,
    /// Whether a broker failed since it was asked.
    doubted: bool,
    resting: Resting,
}

impl Routes {
    pub(crate) fn new(rocketmq: &Rocketmq, topic: CheetahString) -> Self {
        Self {
            rocketmq: rocketmq.clone(),
            topic,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The brokers to read from: those of the route, less those that failed a moment ago where others did not. At
    /// least one.
    ///
    /// # Errors
    /// There is no route, and none that was known before.
    pub(crate) async fn to_read(self: &Arc<Self>) -> Result<Vec<Broker>, Fault> {
        let brokers = self.current().await?;
        let known = self.known();
        Ok(known.resting.awake(&brokers, |it| &it.name).into_iter().cloned().collect())
    }

    /// The broker of that name.
    ///
    /// # Errors
    /// The route does not lead to it.
    pub(crate) async fn broker(self: &Arc<Self>, name: &str) -> Result<Broker, Fault> {
        let find = |brokers: &[Broker]| brokers.iter().find(|it| it.name == name).cloned();
        let found = find(&self.current().await?);
        if let Some(broker) = found {
            return Ok(broker);
        }
        self.doubt();
        let unknown = || Fault::unavailable(format!("no route leads to broker {name}"));
        find(&self.current().await?).ok_or_else(unknown)
    }

    /// Whether a broker that failed can be connected to again.
    ///
    /// # Errors
    /// It can't be connected to. One that did not fail is not tried.
    pub(crate) async fn reach(&self, broker: &Broker) -> Result<(), Fault> {
        let failed = self.known().resting.has(&broker.name);
        if failed { reach(&broker.address).await } else { Ok(()) }
    }

    /// Takes note that a broker did not answer: the name server is asked before the next use.
    pub(crate) fn failed(&self, broker: &Broker) {
        let new = {
            let mut known = self.known();
            known.doubted = true;
            known.resting.add(&broker.name)
        };
        if new {
            tracing::warn!(topic = %self.topic, broker = %broker.name, "a broker does not answer");
        }
    }

    /// Takes note that it answered.
    pub(crate) fn answered(&self, broker: &Broker) {
        let again = self.known().resting.remove(&broker.name);
        if again {
            tracing::info!(topic = %self.topic, broker = %broker.name, "the broker answers again");
        }
    }

    /// Has the name server asked before the next use.
    pub(crate) fn doubt(&self) {
        self.known().doubted = true;
    }

    /// The route: the one that is known while it is fresh, and while no other is to be had.
    async fn current(self: &Arc<Self>) -> Result<Arc<[Broker]>, Fault> {
        let (brokers, due, doubted) = {
            let known = self.known();
            (Arc::clone(&known.brokers), known.due, known.doubted)
        };
        if brokers.is_empty() {
            self.ask(self.rocketmq.timeouts.admin).await?;
            return Ok(Arc::clone(&self.known().brokers));
        }
        if doubted {
            let _ = self.ask(PATIENCE.min(self.rocketmq.timeouts.admin)).await;
        } else if due.is_none_or(|due| due <= Instant::now()) {
            self.ask_meanwhile();
            return Ok(brokers);
        }
        Ok(Arc::clone(&self.known().brokers))
    }

    fn ask_meanwhile(self: &Arc<Self>) {
        // Whoever comes next does not ask as well.
        self.known().due = Some(Instant::now() + AGAIN);
        let routes = Arc::clone(self);
        tokio::spawn(async move { routes.ask(routes.rocketmq.timeouts.admin).await });
    }

    /// Asks the name server, or waits for who does already.
    async fn ask(&self, limit: Duration) -> Result<(), Fault> {
        let before = self.known().due;
        let asking = tokio::time::timeout(limit, self.asking.lock()).await;
        let Ok(_asking) = asking else {
            return Err(Fault::unavailable("the name server does not answer"));
        };
        let known = || self.known();
        if known().due != before && !known().brokers.is_empty() {
            return Ok(());
        }
        let answer = self.question(limit).await;
        let mut known = self.known();
        known.due = Some(Instant::now() + if answer.is_ok() { FRESH } else { AGAIN });
        known.doubted = false;
        match answer {
            Ok(brokers) if !brokers.is_empty() => known.brokers = brokers.into(),
            // The name server forgets a broker whose connection ended: it may come back where it was.
            Ok(_) if !known.brokers.is_empty() => {}
            Ok(_) => return Err(self.missing()),
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    async fn question(&self, limit: Duration) -> Result<Vec<Broker>, Fault> {
        let route = request::route(&self.rocketmq, &self.topic, limit).await?;
        Ok(route.map(|route| readable(&route)).unwrap_or_default())
    }

    fn missing(&self) -> Fault {
        Fault {
            meaning: Meaning::Missing,
            text: format!("the name server has no readable queue of topic {}", self.topic),
            code: None,
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The brokers that have a readable queue and can be written to, which a pop does.
fn readable(route: &TopicRouteData) -> Vec<Broker> {
    let queues = route.queue_datas.iter();
    let read = queues.filter(|it| it.perm() & READABLE != 0 && it.read_queue_nums() > 0);
    let names: Vec<&CheetahString> = read.map(|queue| queue.broker_name()).collect();
    let brokers = route.broker_datas.iter().filter(|it| names.contains(&it.broker_name()));
    let mut brokers: Vec<Broker> = brokers
        .filter_map(|it| {
            let address = it.broker_addrs().get(&MASTER)?.clone();
            Some(Broker { name: it.broker_name().clone(), address })
        })
        .collect();
    brokers.sort_by(|one, other| one.name.cmp(&other.name));
    brokers.dedup_by(|one, other| one.name == other.name);
    brokers
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
