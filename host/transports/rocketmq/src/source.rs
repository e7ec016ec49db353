use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use pumphouse_contract::Delivery;
use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, ReceiveError, Settlement, Source, Unsettled,
};
use tokio::time::Instant;

use crate::calls::{Fault, Meaning};
use crate::capabilities::{LONGEST_DELAY, LONGEST_WAIT, RECEIVE};
use crate::doubts::Doubts;
use crate::hurry::Hurry;
use crate::incoming::Reading;
use crate::pop::Popper;
use crate::routes::{Broker, Routes};
use crate::settle::Settler;
use crate::{Rocketmq, SourceSpec, capabilities};

/// How long one broker is waited at while there are others.
const SLICE: Duration = Duration::from_secs(1);

/// How long a wait goes on at most that a broker ended early, so that nobody asks without a pause.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a topic as a consumer group, from all brokers that it lies on.
///
/// Each receive begins at another broker. With one broker it is one pop, which waits. With several, all are looked at
/// first without waiting, and what was asked for is shared among them; where nothing came, they are waited at in turn
/// for up to a second each. So a message may wait a second for each other broker, and none starves.
pub(crate) struct PopSource {
    popper: Popper,
    routes: Arc<Routes>,
    settler: Settler,
    capabilities: Capabilities,
    turn: AtomicUsize,
    /// A pop can't be called off; once somebody is in a hurry, none that is sent waits any more.
    hurry: Hurry,
}

/// The messages of several pops, and the failure of one.
#[derive(Default)]
struct Caught {
    deliveries: Vec<Delivery>,
    fault: Option<Fault>,
    /// How many pops were answered.
    answers: usize,
}

impl Caught {
    fn add(&mut self, result: Result<Vec<Delivery>, Fault>) {
        match result {
            Ok(deliveries) => {
                self.deliveries.extend(deliveries);
                self.answers += 1;
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// A failure is told where nobody answered. One broker of several is missed in the logs.
    fn into_result(self) -> Result<Vec<Delivery>, Fault> {
        match self.fault {
            Some(fault) if self.answers == 0 => Err(fault),
            _ => Ok(self.deliveries),
        }
    }
}

impl PopSource {
    pub(crate) fn new(rocketmq: &Rocketmq, spec: &SourceSpec) -> Self {
        let (topic, group) = (rocketmq.name(&spec.topic), rocketmq.name(&spec.group));
        let routes = Arc::new(Routes::new(rocketmq, topic.clone().into()));
        let popper = Popper {
            rocketmq: rocketmq.clone(),
            topic: topic.clone().into(),
            group: group.clone().into(),
            tags: spec.tags.as_deref().unwrap_or("*").into(),
            reading: Reading { kind: spec.kind, rejected: spec.rejected },
        };
        let settler = Settler {
            rocketmq: rocketmq.clone(),
            topic,
            group,
            kind: spec.kind,
            routes: Arc::clone(&routes),
            doubts: Doubts::default(),
        };
        Self {
            popper,
            routes,
            settler,
            capabilities: capabilities(spec.kind),
            turn: AtomicUsize::new(0),
            hurry: Hurry::default(),
        }
    }

    async fn poll(&self, ask: Ask) -> Result<Vec<Delivery>, ReceiveError> {
        let wait = ask.wait.min(LONGEST_WAIT);
        let (max, lease) = (ask.max.clamp(1, RECEIVE), ask.lease.min(LONGEST_DELAY));
        let until = Instant::now() + wait;
        let result = self.receive_by(until, Ask { max, wait, lease }).await;
        let deliveries = result.map_err(|fault| receive_error(&self.popper.topic, fault))?;
        if deliveries.is_empty() && !self.hurry.is_on() {
            let left = until.saturating_duration_since(Instant::now());
            tokio::time::sleep(left.min(PAUSE)).await;
        }
        Ok(deliveries)
    }

    async fn receive_by(&self, until: Instant, ask: Ask) -> Result<Vec<Delivery>, Fault> {
        let mut brokers = self.hurry.bound(Instant::now(), self.routes.to_read()).await?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn.checked_rem(brokers.len()).unwrap_or(0);
        brokers.rotate_left(first);
        if let [broker] = brokers.as_slice() {
            return self.pop(broker, ask).await;
        }
        let looked = self.look(&brokers, ask).await;
        if !looked.deliveries.is_empty() || ask.wait.is_zero() {
            return looked.into_result();
        }
        self.wait_in_turn(&brokers, until, ask, looked).await
    }

    /// Looks at each broker, at as many at once as there may be messages.
    async fn look(&self, brokers: &[Broker], ask: Ask) -> Caught {
        let mut caught = Caught::default();
        for some in brokers.chunks(ask.max) {
            let pops = shares(ask.max, some.len())
                .zip(some)
                .map(|(max, broker)| self.pop(broker, Ask { max, wait: Duration::ZERO, ..ask }));
            join_all(pops).await.into_iter().for_each(|result| caught.add(result));
            if !caught.deliveries.is_empty() || self.hurry.is_on() {
                break;
            }
        }
        caught
    }

    async fn wait_in_turn(
        &self,
        brokers: &[Broker],
        until: Instant,
        ask: Ask,
        mut caught: Caught,
    ) -> Result<Vec<Delivery>, Fault> {
        for broker in brokers.iter().cycle() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.hurry.is_on() {
                break;
            }
            let asked = Instant::now();
            caught.add(self.pop(broker, Ask { wait: left.min(SLICE), ..ask }).await);
            if !caught.deliveries.is_empty() || caught.answers == 0 {
                break;
            }
            let early = left.min(PAUSE).saturating_sub(asked.elapsed());
            tokio::time::sleep(early).await;
        }
        caught.into_result()
    }

    async fn pop(&self, broker: &Broker, ask: Ask) -> Result<Vec<Delivery>, Fault> {
        let wait = if self.hurry.is_on() { Duration::ZERO } else { ask.wait };
        let request = async {
            self.routes.reach(broker).await?;
            self.popper.pop(broker, Ask { wait, ..ask }).await
        };
        let result = self.hurry.bound(Instant::now() + wait, request).await;
        match &result {
            Err(fault) if fault.code.is_none() => self.routes.failed(broker),
            Err(_) => self.routes.doubt(),
            Ok(_) => self.routes.answered(broker),
        }
        result
    }
}

/// So many messages in so many parts, none of which differs from another by more than one.
fn shares(messages: usize, parts: usize) -> impl Iterator<Item = usize> {
    let each = messages.checked_div(parts).unwrap_or(0);
    let more = messages.checked_rem(parts).unwrap_or(0);
    (0..parts).map(move |part| each + usize::from(part < more))
}

fn receive_error(topic: &str, fault: Fault) -> ReceiveError {
    let (source, text) = (topic.to_owned(), fault.text);
    match fault.meaning {
        Meaning::Unavailable | Meaning::Busy => ReceiveError::Unavailable(source, text),
        Meaning::Missing => ReceiveError::Missing(source, text),
        Meaning::Denied => ReceiveError::Denied(source, text),
        Meaning::Refused => ReceiveError::Other(source, text),
    }
}

impl Source for PopSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.poll(ask))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(self.settler.settle(batch))
    }

    /// A pop in progress goes on for as long as it was to wait, and a second: given up sooner, it would lease messages to
    /// nobody. One that is not answered by then is given up; what it may bring still lapses, and is counted once more.
    fn interrupt(&self) {
        self.hurry.begin();
    }

    /// Connections are shared with other subscriptions and are closed with the last of them.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
