//! A source whose answers a test scripts, with what no real broker does on demand.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses its part"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{self, AtomicU32};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pumphouse_contract::ports::{
    Action, Ask, BoxFuture, Capabilities, Commit, Condition, Counter, Depth, Event, Failure,
    Handler, Invocation, LeaseSetting, MarkKey, Observer, Ordering, PublishError, ReceiveError,
    Settlement, Sink, Source, State, StateError, Unsettled, Version,
};
use pumphouse_contract::{
    Attempt, Backoff, Budget, Clock, Counted, Delivery, Ended, Lease, LeaseBudget, Message,
    Outcome, Outgoing, Policy, Receipt, Timestamp,
};
use pumphouse_pump::{
    Deduplicate, Dispatch, KeySource, Pump, Settings, Sinks, Subscription, SystemClock,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

pub const CAPABILITIES: Capabilities = Capabilities {
    system: "scripted",
    receive_batch: 10,
    settle_batch: 10,
    settle_linger: Duration::from_millis(5),
    receive_linger: Duration::from_millis(5),
    longest_wait: Duration::from_secs(20),
    longest_delay: Duration::from_secs(43_200),
    delay_counts_from_receive: true,
    longest_lease: Duration::from_secs(43_200),
    lease_setting: LeaseSetting::OnReceive,
    undispatched_release_counts: true,
    counter: Counter::Exact,
    count_advances: true,
    ordering: Ordering::Key,
    batch_may_hold_followers: false,
};

#[derive(Default)]
struct Queue {
    /// Ready messages in order: id and key.
    ready: VecDeque<(String, Option<String>)>,
    out: BTreeMap<String, (String, Option<String>)>,
    attempts: BTreeMap<String, u32>,
    receipts: u64,
    /// Released with a delay that has not passed.
    away: Vec<Option<String>>,
}

/// What a settle answers to a message instead of doing it; the messages by id, each answer used once.
pub type Script = Arc<Mutex<BTreeMap<String, VecDeque<Failure>>>>;

pub struct Scripted {
    capabilities: Capabilities,
    queue: Arc<Mutex<Queue>>,
    pub arrived: Arc<Notify>,
    pub script: Script,
    pub settled: Arc<Mutex<Vec<(String, Action, bool)>>>,
    /// How long a settlement is done before it is answered.
    pub answers_late: Mutex<Duration>,
    /// Receives that never come back, counted down.
    pub hang: Arc<Mutex<u32>>,
    pub receive_errors: Arc<Mutex<VecDeque<ReceiveError>>>,
    pub receives: Arc<Mutex<Vec<(Instant, Ask)>>>,
    clock: Arc<dyn Clock>,
}

impl Scripted {
    pub fn new(capabilities: Capabilities, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            capabilities,
            queue: Arc::default(),
            arrived: Arc::default(),
            script: Script::default(),
            settled: Arc::default(),
            answers_late: Mutex::default(),
            hang: Arc::default(),
            receive_errors: Arc::default(),
            receives: Arc::default(),
            clock,
        })
    }

    pub fn publish(&self, id: &str, key: Option<&str>) {
        let message = (id.to_owned(), key.map(str::to_owned));
        self.queue.lock().unwrap().ready.push_back(message);
        self.arrived.notify_one();
    }

    /// The next settlements of this message fail so.
    pub fn fail(&self, id: &str, failures: &[Failure]) {
        self.script.lock().unwrap().insert(id.to_owned(), failures.iter().copied().collect());
    }

    pub fn left(&self) -> usize {
        let queue = self.queue.lock().unwrap();
        queue.ready.len() + queue.out.len() + queue.away.len()
    }

    pub fn ready(&self) -> Vec<String> {
        self.queue.lock().unwrap().ready.iter().map(|(id, _)| id.clone()).collect()
    }

    fn take(&self, ask: Ask) -> Vec<Delivery> {
        let mut queue = self.queue.lock().unwrap();
        let mut taken = Vec::new();
        // As SQS FIFO does: a key that is out is locked; one batch may hold several of a key.
        let locked: Vec<String> =
            queue.out.values().map(|(_, key)| key).chain(&queue.away).flatten().cloned().collect();
        let mut rest = VecDeque::new();
        while let Some((id, key)) = queue.ready.pop_front() {
            let free = key.as_ref().is_none_or(|key| !locked.contains(key));
            if taken.len() < ask.max && free {
                taken.push(self.deliver(&mut queue, id, key, ask.lease));
            } else {
                rest.push_back((id, key));
            }
        }
        queue.ready = rest;
        taken
    }

    fn deliver(
        &self,
        queue: &mut Queue,
        id: String,
        key: Option<String>,
        lease: Duration,
    ) -> Delivery {
        queue.receipts += 1;
        let receipt = format!("{id}#{}", queue.receipts);
        queue.out.insert(receipt.clone(), (id.clone(), key.clone()));
        let attempt = queue.attempts.entry(id.clone()).or_default();
        *attempt += 1;
        Delivery {
            message: Arc::new(Message {
                id,
                ordering_key: key,
                published_at: Some(self.clock.wall()),
                body: Bytes::from_static(b"body"),
                ..Message::default()
            }),
            undecodable: None,
            counted: Attempt::from_wire(i64::from(*attempt))
                .map_or(Counted::Unreported, Counted::Exact),
            first_received_at: None,
            lease: Lease::from(self.clock.mono(), lease),
            receipt: Receipt::from(receipt),
        }
    }

    fn settle_one(&self, settlement: Settlement) -> Result<(), Unsettled> {
        let receipt = settlement.receipt.as_text().into_owned();
        let id = receipt.split('#').next().unwrap().to_owned();
        let failure = self.script.lock().unwrap().get_mut(&id).and_then(VecDeque::pop_front);
        self.settled.lock().unwrap().push((id, settlement.action, failure.is_none()));
        if let Some(failure) = failure {
            return Err(Unsettled { settlement, failure, text: "scripted".into() });
        }
        let mut queue = self.queue.lock().unwrap();
        let Some(message) = queue.out.remove(&receipt) else {
            return Err(Unsettled { settlement, failure: Failure::Gone, text: "unknown".into() });
        };
        if let Action::Release(after) = settlement.action {
            queue.away.push(message.1.clone());
            let (queue, arrived) = (self.queue.clone(), self.arrived.clone());
            let back = move || {
                // A released message takes its place before the younger ones.
                let mut queue = queue.lock().unwrap();
                let away = queue.away.iter().position(|key| *key == message.1).unwrap();
                queue.away.remove(away);
                let place = queue.ready.iter().position(|(id, _)| *id > message.0);
                let place = place.unwrap_or(queue.ready.len());
                queue.ready.insert(place, message);
                arrived.notify_one();
            };
            tokio::spawn(async move {
                sleep(after).await;
                back();
            });
        }
        Ok(())
    }
}

impl Source for Scripted {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(async move {
            self.receives.lock().unwrap().push((Instant::now(), ask));
            let hangs = {
                let mut hang = self.hang.lock().unwrap();
                let hangs = *hang > 0;
                *hang = hang.saturating_sub(1);
                hangs
            };
            if hangs {
                std::future::pending::<()>().await;
            }
            if let Some(error) = self.receive_errors.lock().unwrap().pop_front() {
                return Err(error);
            }
            let until = Instant::now() + ask.wait;
            loop {
                let taken = self.take(ask);
                if !taken.is_empty() || Instant::now() >= until {
                    return Ok(taken);
                }
                let _ = tokio::time::timeout_at(until, self.arrived.notified()).await;
            }
        })
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(async move {
            let answers = batch.into_iter().map(|one| self.settle_one(one)).collect();
            let late = *self.answers_late.lock().unwrap();
            sleep(late).await;
            answers
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// What a native handler does with a message: its id and count.
pub type Behaviour = dyn Fn(String, u32) -> BoxFuture<'static, Result<Outcome, pumphouse_contract::Fault>>
    + Send
    + Sync;

#[derive(Clone)]
pub struct Native {
    pub behaviour: Arc<Behaviour>,
    pub calls: Arc<Mutex<Vec<(String, u32)>>>,
}

impl Native {
    pub fn new<F, R>(behaviour: F) -> Self
    where
        F: Fn(String, u32) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, pumphouse_contract::Fault>> + Send + 'static,
    {
        Self {
            behaviour: Arc::new(move |id, count| Box::pin(behaviour(id, count))),
            calls: Arc::default(),
        }
    }

    pub fn calls(&self) -> Vec<(String, u32)> {
        self.calls.lock().unwrap().clone()
    }
}

impl Handler for Native {
    fn begin(&self) -> Arc<dyn Version> {
        Arc::new(self.clone())
    }

    fn slots(&self) -> Option<usize> {
        None
    }
}

impl Version for Native {
    fn name(&self) -> &str {
        "test/native"
    }

    fn digest(&self) -> &str {
        "0123456789abcdef"
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        let id = invocation.message.id.clone();
        self.calls.lock().unwrap().push((id.clone(), invocation.count.0));
        let ended = (self.behaviour)(id, invocation.count.0);
        Box::pin(async move { Ended { result: ended.await, usage: Default::default() } })
    }
}

/// A destination that refuses as often as it is told to.
#[derive(Default)]
pub struct Shelf {
    pub copies: Mutex<Vec<Outgoing>>,
    pub refuse: Mutex<u32>,
    pub slow: Mutex<Duration>,
}

impl Sink for Shelf {
    fn name(&self) -> &str {
        "shelf"
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async move {
            let slow = *self.slow.lock().unwrap();
            sleep(slow).await;
            let mut refuse = self.refuse.lock().unwrap();
            if *refuse > 0 {
                *refuse -= 1;
                return Err(PublishError::Unavailable("shelf".into(), "refused".into()));
            }
            self.copies.lock().unwrap().push(message);
            Ok("copy".into())
        })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async { Ok(Depth::default()) })
    }
}

#[derive(Default)]
pub struct Notes(pub Mutex<Vec<String>>);

impl Notes {
    pub fn count(&self, begins: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|note| note.starts_with(begins)).count()
    }
}

impl Observer for Notes {
    fn record(&self, event: Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

#[derive(Default)]
pub struct Marks {
    pub marks: Mutex<Vec<String>>,
    pub fail: Mutex<bool>,
}

impl Marks {
    fn check(&self) -> Result<(), StateError> {
        if *self.fail.lock().unwrap() {
            return Err(StateError { path: "marks".into(), text: "disk full".into() });
        }
        Ok(())
    }
}

impl State for Marks {
    fn seen<'a>(
        &'a self,
        key: &'a MarkKey,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        Box::pin(async move {
            self.check()?;
            Ok(self.marks.lock().unwrap().contains(&key.key))
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async move {
            self.check()?;
            self.marks.lock().unwrap().push(commit.mark.key);
            Ok(())
        })
    }
}

/// A subscription over the scripted parts, with what a test looks at.
pub struct Bench {
    pub source: Arc<Scripted>,
    pub handler: Native,
    pub dead_letter: Arc<Shelf>,
    pub notes: Arc<Notes>,
    pub marks: Arc<Marks>,
    pub subscription: Subscription,
}

pub fn settings(dispatch: Dispatch) -> Settings {
    Settings {
        dispatch,
        policy: Policy {
            budget: Budget::Unlimited,
            backoff: Backoff { jitter: pumphouse_contract::Jitter::None, ..Backoff::default() },
            ..Policy::default()
        },
        honours_copies: false,
        lease: LeaseBudget {
            queue_wait: Duration::from_secs(1),
            deadline: Duration::from_secs(30),
            linger: Duration::from_millis(5),
            settle_timeout: Duration::from_secs(5),
            settle_tries: 3,
            publish_timeout: Some(Duration::from_secs(10)),
            skew: Duration::from_secs(2),
        },
        receive_wait: Duration::from_secs(15),
        receive_margin: Duration::from_secs(5),
    }
}

pub fn bench(capabilities: Capabilities, dispatch: Dispatch, handler: Native) -> Bench {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let source = Scripted::new(capabilities, clock.clone());
    let (dead_letter, notes) = (Arc::new(Shelf::default()), Arc::new(Notes::default()));
    let subscription = Subscription {
        name: "sub".into(),
        source_name: "queue".into(),
        source: source.clone(),
        handler: Arc::new(handler.clone()),
        sinks: Sinks { dead_letter: Some(dead_letter.clone()), invalid_message: None },
        deduplicate: None,
        tenant: None,
        pace: None,
        observer: notes.clone(),
        clock,
        settings: settings(dispatch),
    };
    Bench { source, handler, dead_letter, notes, marks: Arc::default(), subscription }
}

impl Bench {
    pub fn deduplicated(mut self) -> Self {
        self.subscription.deduplicate = Some(Deduplicate {
            state: self.marks.clone(),
            scope: "tenant/sub/leg".into(),
            key: KeySource::Id,
            ttl: Duration::from_secs(3600),
        });
        self
    }
}

/// Waits, in the test's own time, until something holds; fails after two minutes of it.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

pub const GRACE: Duration = Duration::from_secs(30);
pub const CONCURRENT: Dispatch = Dispatch::Concurrent(16);
pub const BOTH: [Dispatch; 2] = [Dispatch::Sequential, CONCURRENT];

pub fn always(outcome: Outcome) -> Native {
    Native::new(move |_, _| {
        let outcome = outcome.clone();
        async move { Ok(outcome) }
    })
}

/// Takes so long and acks; with the most calls that ran at once.
pub fn watched(takes: Duration) -> (Native, Arc<AtomicU32>) {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let seen = most.clone();
    let handler = Native::new(move |_, _| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(
                running.fetch_add(1, atomic::Ordering::SeqCst) + 1,
                atomic::Ordering::SeqCst,
            );
            sleep(takes).await;
            running.fetch_sub(1, atomic::Ordering::SeqCst);
            Ok(Outcome::Ack)
        }
    });
    (handler, seen)
}

pub async fn stop(pump: &Pump) {
    assert!(pump.stop(GRACE).await.clean);
    assert_eq!(pump.status().condition, Condition::Stopped);
}
