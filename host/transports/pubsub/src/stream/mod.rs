//! `StreamingPull`: the service pushes, and what nobody has asked for yet is held.
//!
//! - [`lane`] and [`shelf`] know what is held, in which order it may go, and what goes back with what. They are pure.
//! - [`session`] keeps the call open.
//! - [`keep`] extends what is held and gives back what can't stay.

mod keep;
mod lane;
mod session;
mod shelf;
#[cfg(test)]
mod shelf_tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::{
    Action, Ask, BoxFuture, Capabilities, Failure, ReceiveError, Settlement, Source, Unsettled,
};
use pumphouse_contract::{Delivery, Lease, Mono};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use self::lane::Pushed;
use self::shelf::{Left, Lost, Shelf};
use crate::incoming::{Reading, delivery};
use crate::provision::Channelled;
use crate::pull::in_order;
use crate::settle::{BATCH, LONGEST_DELAY, Settler, ack_id};
use crate::{Pubsub, SourceSpec, capabilities};

/// The least that a stream's lease is longer than the one that is needed: how long a message may be held before it
/// costs a call.
const SLACK: Duration = Duration::from_secs(30);

/// What a lease may fall short by where Pub/Sub has no longer one.
const TOLERANCE: Duration = Duration::from_secs(2);

/// A subscription that pushes.
pub(crate) struct StreamSource {
    stream: Arc<Stream>,
    capabilities: Capabilities,
    started: AtomicBool,
}

/// How the call is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Link {
    /// Being opened: nothing is known yet, or it ended as it does every half hour.
    Opening,
    /// The service has answered.
    Up,
    /// It could not be opened.
    Down(ReceiveError),
    /// Drained.
    Closed,
}

struct State {
    shelf: Shelf,
    link: Link,
}

/// What a source shares with its task.
struct Stream {
    settler: Settler,
    /// For the service: which key was ours, after a reconnect.
    client: String,
    /// The most messages that the service should have outstanding.
    outstanding: usize,
    /// The lease of what is pushed.
    lease: Duration,
    /// What is left of it when a held message is extended.
    need: Duration,
    reading: Reading,
    state: Mutex<State>,
    /// Something can be handed over, or the link changed.
    changed: Notify,
    /// One request at a time gives back what can't stay, so that their order is the service's.
    returning: tokio::sync::Mutex<()>,
    stop: CancellationToken,
    stopped: CancellationToken,
    duplicates: std::sync::atomic::AtomicU64,
}

impl StreamSource {
    pub(crate) fn new(pubsub: &Pubsub, spec: &SourceSpec, found: Channelled) -> Self {
        let capabilities = capabilities(spec.mode, spec.ordered);
        let settler = Settler {
            subscription: pubsub.subscription(&spec.subscription),
            pubsub: pubsub.clone(),
        };
        Self {
            stream: Arc::new(Stream::new(settler, spec)),
            capabilities: Capabilities { count_advances: found.counts, ..capabilities },
            started: AtomicBool::new(false),
        }
    }

    /// The task begins with the first receive, so that a source that is only made does not take messages.
    fn start(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.stream.clone().run());
        }
    }
}

/// What a look at the shelf found.
enum Look {
    Found(Vec<Pushed>),
    Nothing { up: bool },
    Failed(ReceiveError),
}

impl Stream {
    fn new(settler: Settler, spec: &SourceSpec) -> Self {
        let lease = spec.lease.saturating_add(spec.lease.max(SLACK));
        let lease = lease.clamp(Duration::from_secs(10), LONGEST_DELAY);
        Self {
            client: format!("pumphouse-{:016x}", rand::random::<u64>()),
            outstanding: spec.concurrency.max(1),
            lease,
            need: spec.lease.saturating_add(settler.pubsub.timeouts.settle),
            reading: Reading { rejected: spec.rejected },
            state: Mutex::new(State {
                shelf: Shelf::new(spec.held, spec.ordered),
                link: Link::Opening,
            }),
            changed: Notify::new(),
            returning: tokio::sync::Mutex::new(()),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            duplicates: 0.into(),
            settler,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Mono {
        self.settler.pubsub.clock.mono()
    }

    fn name(&self) -> &str {
        &self.settler.subscription
    }

    fn set(&self, link: Link) {
        let mut state = self.state();
        if state.link != Link::Closed && state.link != link {
            state.link = link;
            drop(state);
            self.changed.notify_waiters();
        }
    }

    fn look(&self, max: usize) -> Look {
        let mut state = self.state();
        match &state.link {
            Link::Down(error) => return Look::Failed(error.clone()),
            Link::Closed => return Look::Found(Vec::new()),
            Link::Opening | Link::Up => {}
        }
        let found = state.shelf.take(max, self.now());
        match found.is_empty() {
            true => Look::Nothing { up: state.link == Link::Up },
            false => Look::Found(found),
        }
    }

    /// What is there, or comes in time. Until the service has answered, silence says nothing: that is waited for
    /// as long as a request may take.
    async fn receive(&self, ask: Ask, wait: Duration) -> Result<Vec<Delivery>, ReceiveError> {
        let quiet = Instant::now() + wait;
        let answered = Instant::now() + self.settler.pubsub.timeouts.poll_margin;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let up = match self.look(ask.max) {
                Look::Found(found) => return Ok(self.hand_over(found, ask.lease).await),
                Look::Failed(error) => return Err(error),
                Look::Nothing { up } => up,
            };
            let until = if up { quiet } else { quiet.max(answered) };
            if timeout_at(until, changed).await.is_err() {
                let text = "the stream was not opened in time".to_owned();
                let late = ReceiveError::Unavailable(self.name().to_owned(), text);
                return if up { Ok(Vec::new()) } else { Err(late) };
            }
        }
    }

    /// Makes deliveries. None of them has less of its lease left than is asked for.
    async fn hand_over(&self, mut found: Vec<Pushed>, lease: Duration) -> Vec<Delivery> {
        let least = lease.min(self.lease.saturating_sub(TOLERANCE));
        let now = self.now();
        let short = |pushed: &Pushed| pushed.until.since(now) < least;
        let ids: Vec<String> =
            found.iter().filter(|one| short(one)).map(|one| one.ack_id().to_owned()).collect();
        if !ids.is_empty() {
            let (tried, until) = self.extend(ids).await;
            found.retain(|one| tried.get(one.ack_id()) != Some(&false));
            for one in found.iter_mut().filter(|one| tried.contains_key(one.ack_id())) {
                one.until = until;
            }
            let lost = tried.into_iter().filter(|(_, extended)| !extended).map(|(id, _)| id);
            let lost: Vec<String> = lost.collect();
            self.give_up(&lost, Lost::Leased).await;
        }
        let deliver = |one: Pushed| {
            let lease = Lease { received: one.at, until: one.until };
            delivery(one.received, lease, self.reading)
        };
        found.into_iter().map(deliver).collect()
    }

    /// Settles, with what goes back along. To be run in a task of its own: whoever asked may give up, and the order
    /// of a key depends on what came of it.
    async fn settle(self: Arc<Self>, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        let (mut whole, mut spans) = (Vec::new(), Vec::new());
        for settlement in batch {
            let followers = self.followers(&settlement);
            spans.push(followers.len());
            whole.push(settlement);
            whole.extend(followers);
        }
        let mut answers = Vec::with_capacity(whole.len());
        // One request after another: they are in order.
        for piece in whole.chunks(BATCH) {
            answers.extend(self.settler.settle(piece.to_vec()).await);
        }
        let mut answers = whole.into_iter().zip(answers);
        let mut heads = Vec::with_capacity(spans.len());
        for followers in spans {
            let Some((settlement, answer)) = answers.next() else { break };
            self.settled(&settlement, answer.as_ref().err().map(|it| it.failure)).await;
            let failed =
                answers.by_ref().take(followers).filter(|(_, answer)| answer.is_err()).count();
            self.say_unreturned(failed);
            heads.push(answer);
        }
        self.changed.notify_waiters();
        heads
    }

    /// What goes back with a message that does.
    fn followers(&self, settlement: &Settlement) -> Vec<Settlement> {
        let Action::Release(delay) = settlement.action else { return Vec::new() };
        let ids = self.state().shelf.releasing(&ack_id(&settlement.receipt), delay);
        let action = settlement.action;
        ids.into_iter().map(|id| Settlement { receipt: id.into(), action }).collect()
    }

    /// What came of a settlement.
    async fn settled(&self, settlement: &Settlement, failure: Option<Failure>) {
        let id = ack_id(&settlement.receipt);
        match (settlement.action, failure) {
            (Action::Ack, None) => self.state().shelf.acknowledged(&id, self.now()),
            (Action::Ack, Some(Failure::Retry)) => {}
            (Action::Ack, Some(Failure::Gone)) => self.give_up(&[id], Lost::Free).await,
            (Action::Ack, Some(Failure::Refused)) => self.give_up(&[id], Lost::Leased).await,
            (Action::Release(_), Some(Failure::Retry)) => self.went_back(&id, Left::Still).await,
            (Action::Release(_), None | Some(Failure::Gone | Failure::Refused)) => {
                self.went_back(&id, Left::Gone).await;
            }
        }
    }
}

/// Where the task of a settlement was ended with the runtime.
fn unknown(settlement: Settlement) -> Result<(), Unsettled> {
    let text = "the host ends".to_owned();
    Err(Unsettled { settlement, failure: Failure::Retry, text })
}

impl Source for StreamSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        self.start();
        let wait = ask.wait.min(self.capabilities.longest_wait);
        Box::pin(self.stream.receive(ask, wait))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        // The emulator puts what is released without a delay behind all others of its key.
        let ordered = self.capabilities.ordering == pumphouse_contract::ports::Ordering::Key;
        let batch: Vec<_> = if ordered { batch.into_iter().map(in_order).collect() } else { batch };
        Box::pin(async move {
            let task = tokio::spawn(self.stream.clone().settle(batch.clone()));
            task.await.unwrap_or_else(|_| batch.into_iter().map(unknown).collect())
        })
    }

    /// Nothing is handed over any more: what is held goes back at once.
    fn interrupt(&self) {
        self.stream.set(Link::Closed);
        self.stream.stop.cancel();
    }

    fn held(&self) -> usize {
        self.stream.state().shelf.held()
    }

    fn duplicates(&self) -> u64 {
        self.stream.duplicates.load(Ordering::Relaxed)
    }

    /// Ends when what was held is given back.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.interrupt();
        Box::pin(async {
            if self.started.swap(true, Ordering::Relaxed) {
                self.stream.stopped.cancelled().await;
            }
        })
    }
}

impl Drop for StreamSource {
    fn drop(&mut self) {
        self.interrupt();
    }
}
