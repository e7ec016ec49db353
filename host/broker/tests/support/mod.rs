//! What the tests share: a clock that can step, and short names for what a pump does.
#![allow(dead_code, unused_macros, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pumphouse_broker::Broker;
use pumphouse_contract::ports::{Action, Ask, Failure, Settlement, Sink, Source};
use pumphouse_contract::{Clock, Delivery, Mono, Outgoing, Timestamp};
use tokio::time::Instant;

/// Expands each case for both brokers.
macro_rules! cases {
    ($($(#[$note:meta])* $case:ident)*) => {
        mod memory {
            $($(#[$note])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() { super::$case(super::Rig::memory().await).await; })*
        }
        mod durable {
            $($(#[$note])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() { super::$case(super::Rig::durable().await).await; })*
        }
    };
}

/// A lease that no test outlives.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// A lease or a delay that a test waits out.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// One in which something else is looked at first.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1_500);
/// A wait that is cut short by what the test is about.
pub(crate) const PATIENT: Duration = Duration::from_secs(15);
/// No wait.
pub(crate) const NOW: Duration = Duration::ZERO;

/// Runs with Tokio's time; its wall clock can step.
pub(crate) struct TestClock {
    origin: Instant,
    wall: u64,
    skew: AtomicI64,
}

impl TestClock {
    pub(crate) fn start() -> Arc<Self> {
        let since_epoch = std::time::UNIX_EPOCH.elapsed().expect("a date after 1970");
        let wall = u64::try_from(since_epoch.as_millis()).expect("a date");
        Arc::new(Self { origin: Instant::now(), wall, skew: AtomicI64::new(0) })
    }

    pub(crate) fn step(&self, millis: i64) {
        self.skew.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        let elapsed = u64::try_from(self.origin.elapsed().as_millis()).expect("a short test");
        Timestamp((self.wall + elapsed).saturating_add_signed(self.skew.load(Ordering::SeqCst)))
    }

    fn mono(&self) -> Mono {
        Mono(self.origin.elapsed())
    }
}

/// One queue with both its ends.
pub(crate) struct Rig {
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) directory: Option<tempfile::TempDir>,
}

pub(crate) const QUEUE: &str = "orders";

impl Rig {
    pub(crate) async fn memory() -> Self {
        let clock = TestClock::start();
        let broker = Broker::memory(clock.clone());
        Self::around(broker, clock, None).await
    }

    pub(crate) async fn durable() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = TestClock::start();
        let broker = Broker::open(directory.path(), clock.clone()).await.expect("it opens");
        Self::around(broker, clock, Some(directory)).await
    }

    pub(crate) async fn around(
        broker: Broker,
        clock: Arc<TestClock>,
        directory: Option<tempfile::TempDir>,
    ) -> Self {
        broker.create(QUEUE).await.expect("a queue");
        let source = broker.source(QUEUE).expect("a source");
        let sink = broker.sink(QUEUE).expect("a sink");
        Self { broker, clock, source, sink, directory }
    }

    /// Closes the durable broker and opens it again.
    pub(crate) async fn reopen(self) -> Self {
        self.broker.close().await;
        let directory = self.directory.expect("a durable broker");
        let broker = Broker::open(directory.path(), self.clock.clone()).await.expect("it opens");
        Self::around(broker, self.clock, Some(directory)).await
    }

    pub(crate) async fn publish(&self, key: Option<&str>, body: &str) -> String {
        self.sink.publish(outgoing(key, body)).await.expect("published")
    }

    pub(crate) async fn receive(
        &self,
        max: usize,
        wait: Duration,
        lease: Duration,
    ) -> Vec<Delivery> {
        self.source.receive(Ask { max, wait, lease }).await.expect("received")
    }

    /// The one message that is there now.
    pub(crate) async fn one(&self, lease: Duration) -> Delivery {
        let mut deliveries = self.receive(10, NOW, lease).await;
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        deliveries.pop().expect("one")
    }

    /// The one message that is soon there.
    pub(crate) async fn soon(&self, lease: Duration) -> Delivery {
        let mut deliveries = self.receive(10, PATIENT, lease).await;
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        deliveries.pop().expect("one")
    }

    pub(crate) async fn nothing(&self) {
        let deliveries = self.receive(10, NOW, LONG).await;
        assert!(deliveries.is_empty(), "{deliveries:?}");
    }

    pub(crate) async fn settle(&self, delivery: &Delivery, action: Action) -> Result<(), Failure> {
        settle(self.source.as_ref(), delivery, action).await
    }

    pub(crate) async fn ack(&self, delivery: &Delivery) {
        assert_eq!(self.settle(delivery, Action::Ack).await, Ok(()));
    }

    pub(crate) async fn release(&self, delivery: &Delivery, delay: Duration) {
        assert_eq!(self.settle(delivery, Action::Release(delay)).await, Ok(()));
    }

    pub(crate) fn messages(&self) -> u64 {
        self.broker.depth(QUEUE).expect("a queue").messages.expect("a number")
    }
}

pub(crate) async fn settle(
    source: &dyn Source,
    delivery: &Delivery,
    action: Action,
) -> Result<(), Failure> {
    let settlement = Settlement { receipt: delivery.receipt.clone(), action };
    let mut answers = source.settle(vec![settlement.clone()]).await;
    assert_eq!(answers.len(), 1);
    answers.pop().expect("one").map_err(|unsettled| {
        assert_eq!(unsettled.settlement, settlement, "it is given back");
        assert!(!unsettled.text.is_empty());
        unsettled.failure
    })
}

pub(crate) fn outgoing(key: Option<&str>, body: &str) -> Outgoing {
    Outgoing {
        ordering_key: key.map(str::to_owned),
        body: body.to_owned().into(),
        ..Outgoing::default()
    }
}

pub(crate) fn body(delivery: &Delivery) -> &str {
    std::str::from_utf8(&delivery.message.body).expect("text")
}

pub(crate) fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(body).collect()
}

/// The count that a handler would see.
pub(crate) fn count(delivery: &Delivery) -> u32 {
    delivery.counted.count().0
}
