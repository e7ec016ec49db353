//! A stream's source as a pump drives it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use pumphouse_contract::ports::{Action, Ask, ReceiveError, Settlement, Source, Unsettled};
use pumphouse_contract::{Clock, Delivery, Mono, Timestamp};
use pumphouse_pubsub::{Provision, Pubsub, PubsubSettings, SourceSpec, Timeouts};

pub(crate) const S: fn(u64) -> Duration = Duration::from_secs;

/// The machine's clock, which can be put forward.
pub(crate) struct TestClock {
    origin: Instant,
    ahead: Mutex<Duration>,
}

impl Default for TestClock {
    fn default() -> Self {
        Self { origin: Instant::now(), ahead: Mutex::default() }
    }
}

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        *self.ahead.lock().unwrap() += by;
    }

    pub(crate) fn now(&self) -> Mono {
        self.mono()
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp(since.as_millis().try_into().unwrap())
    }

    fn mono(&self) -> Mono {
        Mono(self.origin.elapsed() + *self.ahead.lock().unwrap())
    }
}

pub(crate) struct Reader {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) clock: Arc<TestClock>,
}

impl Reader {
    /// A stream whose lease is 40 s: the shortest that there is.
    pub(crate) async fn new(endpoint: &str, with: impl FnOnce(&mut SourceSpec)) -> Self {
        let clock = Arc::new(TestClock::default());
        let mut spec = SourceSpec::new("sub", Provision::Assume);
        spec.lease = S(10);
        with(&mut spec);
        let settings = PubsubSettings {
            project: Some("project".to_owned()),
            endpoint: Some(endpoint.to_owned()),
            timeouts: Timeouts { poll_margin: S(3), settle: S(1), ..Timeouts::default() },
            ..PubsubSettings::new(clock.clone())
        };
        let source = Pubsub::connect(settings).await.unwrap().source(spec).await.unwrap();
        Self { source, clock }
    }

    pub(crate) async fn receive_with(
        &self,
        max: usize,
        wait: Duration,
        lease: Duration,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        self.source.receive(ask(max, wait, lease)).await
    }

    pub(crate) async fn receive_for(
        &self,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        self.receive_with(max, wait, S(10)).await
    }

    pub(crate) async fn receive(&self, max: usize) -> Result<Vec<Delivery>, ReceiveError> {
        self.receive_for(max, S(5)).await
    }

    /// The next, as a pump waits for it: through failures.
    pub(crate) async fn one(&self) -> Delivery {
        let end = Instant::now() + S(20);
        loop {
            assert!(Instant::now() < end, "nothing came");
            match self.receive_for(1, S(1)).await {
                Ok(mut got) if !got.is_empty() => return got.remove(0),
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    pub(crate) async fn settle(
        &self,
        what: Vec<(&Delivery, Action)>,
    ) -> Vec<Result<(), Unsettled>> {
        let settlement = |(delivery, action): (&Delivery, Action)| Settlement {
            receipt: delivery.receipt.clone(),
            action,
        };
        self.source.settle(what.into_iter().map(settlement).collect()).await
    }

    async fn all(&self, deliveries: Vec<Delivery>, action: Action) {
        let answers = self.settle(deliveries.iter().map(|one| (one, action)).collect()).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }

    pub(crate) async fn ack(&self, deliveries: Vec<Delivery>) {
        self.all(deliveries, Action::Ack).await;
    }

    pub(crate) async fn release(&self, deliveries: Vec<Delivery>, after: Duration) {
        self.all(deliveries, Action::Release(after)).await;
    }
}

pub(crate) fn ask(max: usize, wait: Duration, lease: Duration) -> Ask {
    Ask { max, wait, lease }
}

pub(crate) fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.message.body).into_owned()
}

pub(crate) fn texts(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(text).collect()
}
