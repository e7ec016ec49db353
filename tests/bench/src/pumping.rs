//! A pump as a host starts it, run until it has settled so many messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::ports::{Event, Handler, Observer, Source};
use pumphouse_contract::{Clock, LeaseBudget, Policy};
use pumphouse_pump::{Dispatch, Pump, Settings, Sinks, Subscription};
use pumphouse_telemetry::Metrics;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::measure::{Sample, Stopwatch};

/// Nothing that is measured takes as long.
const PATIENCE: Duration = Duration::from_secs(120);
const GRACE: Duration = Duration::from_secs(10);

const LEASE: LeaseBudget = LeaseBudget {
    queue_wait: Duration::from_secs(5),
    deadline: Duration::from_secs(30),
    linger: Duration::from_millis(5),
    settle_timeout: Duration::from_secs(5),
    settle_tries: 3,
    publish_timeout: None,
    skew: Duration::from_secs(2),
};

/// What is pumped.
pub(crate) struct Pumping {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Calls at once.
    pub(crate) concurrency: usize,
    /// How many messages wait in the source.
    pub(crate) messages: usize,
}

impl Pumping {
    /// Handles and removes every message; gives what each cost.
    pub(crate) async fn run(self) -> Result<Sample> {
        let finish = Finish::after(self.messages, &*self.source);
        let messages = self.messages;
        let subscription = self.subscription(finish.clone());
        let watch = Stopwatch::start();
        let pump = Pump::start(subscription);
        timeout(PATIENCE, finish.reached.notified()).await.context("the pump stands still")?;
        let sample = watch.stop(messages);
        ensure!(pump.stop(GRACE).await.clean, "the pump did not stop cleanly");
        Ok(sample)
    }

    /// A subscription that waits for messages, so long at a time.
    pub(crate) fn idle(self, receive_wait: Duration) -> Subscription {
        let observer = Finish::after(1, &*self.source);
        let mut subscription = self.subscription(observer);
        subscription.settings.receive_wait = receive_wait;
        subscription
    }

    fn subscription(self, observer: Arc<dyn Observer>) -> Subscription {
        Subscription {
            name: "bench".into(),
            source_name: "bench".into(),
            source: self.source,
            handler: self.handler,
            sinks: Sinks::default(),
            deduplicate: None,
            tenant: None,
            pace: None,
            observer,
            clock: self.clock,
            settings: Settings {
                dispatch: Dispatch::Concurrent(self.concurrency),
                policy: Policy::default(),
                honours_copies: false,
                lease: LEASE,
                receive_wait: Duration::from_secs(1),
                receive_margin: Duration::from_secs(10),
            },
        }
    }
}

/// Counts the settlements on their way to the host's metrics.
struct Finish {
    metrics: Arc<dyn Observer>,
    left: AtomicUsize,
    reached: Notify,
}

impl Finish {
    fn after(messages: usize, source: &dyn Source) -> Arc<Self> {
        let metrics = Metrics::new().subscription(pumphouse_telemetry::Subscription {
            name: "bench",
            tenant: "bench",
            handler: "bench/handler",
            system: source.capabilities().system,
            source: "bench",
        });
        Arc::new(Self { metrics, left: AtomicUsize::new(messages), reached: Notify::new() })
    }
}

impl Observer for Finish {
    fn record(&self, event: Event<'_>) {
        let removed = matches!(event, Event::Settled { action: "ack", failure: None, .. });
        self.metrics.record(event);
        if removed && self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.reached.notify_one();
        }
    }
}
