//! A subscription as a host runs it: the real pump over the embedded broker, with both destinations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pumphouse_broker::Broker;
use pumphouse_contract::copy::names;
use pumphouse_contract::ports::{Event, Handler, Observer, Queues, Sink};
use pumphouse_contract::{
    Backoff, Budget, Jitter, LeaseBudget, Message, OnFault, Outgoing, Policy,
};
use pumphouse_pump::{Dispatch, Pump, Settings, Sinks, Subscription, SystemClock};

use crate::calls::{Calls, Noted};

/// The deliveries that a message has before it is dead.
pub(crate) const BUDGET: u32 = 2;

const IN: &str = "in";
pub(crate) const DEAD: &str = "dead";
pub(crate) const INVALID: &str = "invalid";

/// Longer than anything takes here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const GRACE: Duration = Duration::from_secs(10);

const LEASE: LeaseBudget = LeaseBudget {
    queue_wait: Duration::from_secs(5),
    deadline: Duration::from_secs(90),
    linger: Duration::ZERO,
    settle_timeout: Duration::from_secs(5),
    settle_tries: 3,
    publish_timeout: Some(Duration::from_secs(5)),
    skew: Duration::from_secs(2),
};

/// A running subscription.
pub(crate) struct Scene {
    pub(crate) calls: Arc<Calls>,
    broker: Broker,
    pump: Pump,
}

impl Scene {
    pub(crate) async fn start(handler: Arc<dyn Handler>) -> Result<Self> {
        let clock = Arc::new(SystemClock::new());
        let broker = Broker::memory(clock.clone());
        for queue in [IN, DEAD, INVALID] {
            broker.create(queue).await?;
        }
        let calls = Arc::new(Calls::default());
        let sink = |queue| -> Result<Option<Arc<dyn Sink>>> { Ok(Some(broker.sink(queue)?)) };
        let pump = Pump::start(Subscription {
            name: "hostile".into(),
            source_name: IN.into(),
            source: broker.source(IN)?,
            handler: Arc::new(Noted { inner: handler, calls: calls.clone() }),
            sinks: Sinks { dead_letter: sink(DEAD)?, invalid_message: sink(INVALID)? },
            deduplicate: None,
            tenant: None,
            pace: None,
            observer: Arc::new(Nobody),
            clock,
            settings: settings(),
        });
        Ok(Self { calls, broker, pump })
    }

    /// Publishes a message; its id.
    pub(crate) async fn publish(&self, message: Outgoing) -> Result<String> {
        Ok(Queues::publish(&self.broker, IN, message).await?)
    }

    /// Waits until nothing is left to handle.
    pub(crate) async fn rests(&self) -> Result<()> {
        let empty = || self.broker.depth(IN).is_some_and(|depth| depth.messages == Some(0));
        until("the queue is empty", empty).await
    }

    /// The copy of a rejected message.
    pub(crate) async fn copy(&self, queue: &str, id: &str) -> Result<Option<Arc<Message>>> {
        let waiting = Queues::peek(&self.broker, queue, 100).await?;
        let copies = waiting.into_iter().map(|one| one.message);
        let is_its =
            |copy: &Arc<Message>| copy.headers.text(names::ORIGINAL_MESSAGE_ID) == Some(id);
        Ok(copies.into_iter().find(is_its))
    }

    pub(crate) async fn stop(&self) -> Result<()> {
        if !self.pump.stop(GRACE).await.clean {
            bail!("the pump did not stop cleanly");
        }
        self.broker.close().await;
        Ok(())
    }
}

fn settings() -> Settings {
    let backoff = Backoff { base: Duration::ZERO, max: Duration::ZERO, jitter: Jitter::None };
    Settings {
        dispatch: Dispatch::Concurrent(4),
        policy: Policy {
            budget: Budget::from_configured(BUDGET.into()),
            backoff,
            on_fault: OnFault::Defer,
            ..Policy::default()
        },
        honours_copies: false,
        lease: LEASE,
        receive_wait: Duration::from_secs(1),
        receive_margin: Duration::from_secs(10),
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !so() {
        if began.elapsed() > PATIENCE {
            bail!("not within {} s: {what}", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Takes no note.
struct Nobody;

impl Observer for Nobody {
    fn record(&self, _event: Event<'_>) {}
}
