//! The loop, and the life of one message.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pumphouse_contract::ports::{
    Ask, Condition, Event, Ordering, ReceiveError, SubscriptionStatus,
};
use pumphouse_contract::{Delivery, Mono};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Welcome;
use crate::duplicates::Duplicates;
use crate::health::{Health, receive_backoff};
use crate::lanes::{Held, Lanes};
use crate::progress::{Progress, Undecided};
use crate::settings::Subscription;
use crate::settler::{Bounds, Desk, Settler};

/// Receives at once: enough to keep the handlers busy while others wait for messages.
const MOST_POLLS: usize = 8;
/// For how many messages a second of a tenant's rate there is one receive.
const PACED_POLL: usize = 10;
/// The longest part of the grace that is kept for giving back what a cut leaves.
const LONGEST_CUT: Duration = Duration::from_secs(5);

/// The pump of one subscription. Dropping it stops nothing: [`Pump::stop`] does.
pub struct Pump {
    inner: Arc<Inner>,
    settler: tokio::task::JoinHandle<()>,
}

pub(crate) struct Inner {
    pub(crate) subscription: Subscription,
    pub(crate) permits: Arc<Semaphore>,
    /// Of the receive that asks, where the handler has little room.
    pub(crate) turn: Arc<Mutex<()>>,
    pub(crate) lanes: Lanes,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) desk: Desk,
    pub(crate) progress: Arc<Progress>,
    pub(crate) health: Health,
    pub(crate) tasks: TaskTracker,
    /// Stop asking.
    pub(crate) drain: CancellationToken,
    /// Drop guest calls.
    pub(crate) cut: CancellationToken,
    pub(crate) said_shortened: AtomicBool,
    pub(crate) said_copy: AtomicBool,
}

/// Held from the leave to receive until what came of it is under way, where the handler has little room.
type Turn = Option<OwnedMutexGuard<()>>;

/// How a pump came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Whether everything it held was settled within the grace.
    pub clean: bool,
}

/// How a delivery ended towards its source; a lane goes on only past one that is gone for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Removed,
    Back,
}

impl Pump {
    /// Starts the pump on the current runtime.
    #[must_use]
    pub fn start(subscription: Subscription) -> Self {
        let progress = Arc::new(Progress::default());
        let lease = subscription.settings.lease;
        let (desk, settler) = Settler::new(
            subscription.source.clone(),
            subscription.observer.clone(),
            subscription.clock.clone(),
            progress.clone(),
            Bounds { timeout: lease.settle_timeout, tries: lease.settle_tries },
        );
        let inner = Arc::new(Inner::new(subscription, desk, progress));
        for _ in 0..inner.polls() {
            inner.tasks.spawn(inner.clone().run());
        }
        Self { inner, settler: tokio::spawn(settler.run()) }
    }

    /// What can be seen of it.
    #[must_use]
    pub fn status(&self) -> SubscriptionStatus {
        self.inner.status()
    }

    /// Whether it waits for a source that is not there.
    #[must_use]
    pub fn misses_source(&self) -> bool {
        self.inner.health.misses_source()
    }

    /// Stops asking for messages. What is in progress goes on.
    pub fn drain(&self) {
        self.inner.health.leave(Condition::Draining);
        self.inner.drain.cancel();
        self.inner.subscription.source.interrupt();
    }

    /// Drops the calls in progress; their messages are given back at once.
    pub fn cut(&self) {
        self.drain();
        self.inner.cut.cancel();
    }

    /// Drains, cuts what is left near the end of the grace, and ends within it. Call [`Pump::cut`] meanwhile to
    /// be quicker.
    pub async fn stop(&self, grace: Duration) -> Stopped {
        self.drain();
        self.inner.tasks.close();
        let for_cut = LONGEST_CUT.min(grace / 4);
        let idle = self.inner.tasks.wait();
        tokio::pin!(idle);
        let drained = tokio::select! {
            () = &mut idle => true,
            () = sleep(grace.saturating_sub(for_cut)) => false,
            () = self.inner.cut.cancelled() => false,
        };
        self.cut();
        let clean = drained || timeout(for_cut, idle).await.is_ok();
        self.settler.abort();
        let _ = timeout(Duration::from_secs(1), self.inner.subscription.source.close()).await;
        self.inner.health.leave(Condition::Stopped);
        Stopped { clean }
    }
}

impl Inner {
    fn new(subscription: Subscription, desk: Desk, progress: Arc<Progress>) -> Self {
        let limit = subscription.settings.dispatch.limit();
        let slots = subscription.handler.slots().unwrap_or(limit).max(1);
        let duplicates = subscription
            .deduplicate
            .clone()
            .map(|settings| Duplicates::new(settings, subscription.clock.clone()));
        Self {
            permits: Arc::new(Semaphore::new(limit.min(slots))),
            turn: Arc::default(),
            lanes: Lanes::default(),
            duplicates,
            desk,
            progress,
            health: Health::new(),
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            cut: CancellationToken::new(),
            said_shortened: AtomicBool::new(false),
            said_copy: AtomicBool::new(false),
            subscription,
        }
    }

    /// How many receives run at once. Fewer where a rate is low: each may bring more than is left of it.
    fn polls(&self) -> usize {
        let permits = self.permits.available_permits();
        let pace = self.subscription.pace.as_ref().map(|pace| pace.per_second() as usize);
        let most = pace.map_or(MOST_POLLS, |rate| rate.div_ceil(PACED_POLL).min(MOST_POLLS));
        permits.div_ceil(self.batch()).clamp(1, most)
    }

    /// The most messages of one receive. Where a batch may hold several of one key, those behind a head that is
    /// deferred would lose deliveries: one at a time, over parallel polls (C-18).
    fn batch(&self) -> usize {
        let capabilities = self.subscription.source.capabilities();
        if capabilities.batch_may_hold_followers { 1 } else { capabilities.receive_batch.max(1) }
    }

    /// The pump's loop: permit → leave → receive → lane. A message is received only when a handler is free for it.
    async fn run(self: Arc<Self>) {
        let mut failures = 0;
        while let Some((permits, _turn)) = self.permits().await {
            match self.receive(permits.len()).await {
                Ok(deliveries) => {
                    failures = 0;
                    self.dispatch(deliveries, permits);
                }
                Err(error) => {
                    drop(permits);
                    self.health.failed(self.name(), error.label(), error.to_string());
                    self.pause(receive_backoff(failures)).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    /// At least one permit, and as many more of a batch as are free. None once the pump drains.
    async fn permits(&self) -> Option<(Vec<OwnedSemaphorePermit>, Turn)> {
        let first = tokio::select! {
            biased;
            () = self.drain.cancelled() => return None,
            permit = self.permits.clone().acquire_owned() => permit.ok()?,
        };
        let (most, turn) = tokio::select! {
            biased;
            () = self.drain.cancelled() => return None,
            leave = self.leave() => leave,
        };
        let mut permits = vec![first];
        self.gather(&mut permits, most).await;
        // A drain may have begun meanwhile.
        (!self.drain.is_cancelled()).then_some((permits, turn))
    }

    /// The tenant's leave to receive, and the most messages that it is for. It is waited for before anything is
    /// received, so that nothing has to be given back (C-18). Takes nothing, and may be dropped.
    async fn leave(&self) -> (usize, Turn) {
        let Welcome { most, turn } = self.welcome().await;
        let paced = match &self.subscription.pace {
            Some(pace) => pace.turn().await,
            None => usize::MAX,
        };
        (self.batch().min(most).min(paced), turn)
    }

    /// A receive for a few messages costs as much as one for a full batch: where requests are worth saving, those
    /// that are about to be free are waited for, as briefly as a settlement waits for its batch.
    async fn gather(&self, permits: &mut Vec<OwnedSemaphorePermit>, batch: usize) {
        let linger = self.subscription.source.capabilities().receive_linger;
        let take = |permits: &mut Vec<OwnedSemaphorePermit>| {
            while permits.len() < batch
                && let Ok(permit) = self.permits.clone().try_acquire_owned()
            {
                permits.push(permit);
            }
        };
        take(permits);
        let until = Instant::now() + linger;
        while !linger.is_zero() && permits.len() < batch {
            // What can end now ends first. Woken by each, this would run once for every message.
            yield_now().await;
            take(permits);
            if permits.len() == batch || self.progress.undecided() == 0 {
                break;
            }
            match timeout_at(until, self.permits.clone().acquire_owned()).await {
                Ok(Ok(permit)) => permits.push(permit),
                Ok(Err(_)) | Err(_) => break,
            }
        }
    }

    /// Asks once. Not dropped by a drain: what the broker hands out meanwhile would stay leased.
    async fn receive(&self, max: usize) -> Result<Vec<Delivery>, ReceiveError> {
        let Subscription { source, settings, observer, clock, pace, .. } = &self.subscription;
        // Until the broker has answered, a receive only looks, so that readiness does not wait for a message.
        let wait = match self.health.get().0 {
            Condition::Starting | Condition::Waiting => Duration::ZERO,
            Condition::Running | Condition::Draining | Condition::Stopped => {
                settings.wait(source.capabilities())
            }
        };
        let began = clock.mono();
        let ask = Ask { max, wait, lease: settings.lease.length() };
        let received = match timeout(wait + settings.receive_margin, source.receive(ask)).await {
            Ok(received) => received,
            Err(_) => {
                observer.record(Event::ReceiveStalled);
                Err(self.stalled())
            }
        };
        let took = clock.mono().since(began);
        match &received {
            Ok(deliveries) => {
                if let Some(pace) = pace {
                    pace.received(deliveries.len());
                }
                observer.record(Event::Received { messages: deliveries.len(), took });
                self.health.answered(self.name());
            }
            Err(error) => observer.record(Event::ReceiveFailed { kind: error.label(), took }),
        }
        received
    }

    fn stalled(&self) -> ReceiveError {
        let source = self.subscription.source_name.to_string();
        ReceiveError::Unavailable(source, "a receive was not answered in time".to_owned())
    }

    fn dispatch(self: &Arc<Self>, deliveries: Vec<Delivery>, permits: Vec<OwnedSemaphorePermit>) {
        let ordered = self.subscription.source.capabilities().ordering == Ordering::Key;
        // All of them are expected before the first of them runs: its settlement waits for the others.
        let expected: Vec<_> = deliveries.iter().map(|_| self.progress.expect()).collect();
        for (held, undecided) in deliveries.into_iter().zip(permits).zip(expected) {
            let key = held.0.message.ordering_key.clone().filter(|_| ordered);
            match key {
                Some(key) => {
                    if let Some(head) = self.lanes.enter(&key, held) {
                        self.tasks.spawn(self.clone().lane(key, head, undecided));
                    }
                }
                None => {
                    let this = self.clone();
                    // Borrowed from the task itself: an argument of a future is kept twice.
                    self.tasks.spawn(async move { this.live(&held.0, held.1, undecided).await });
                }
            }
        }
    }

    /// One ordering key: the next begins when the one before is settled. Behind one that goes back, those that
    /// wait go back too, in order (FR-11), unless it is itself again: a broker may hand it out anew before it has
    /// answered its release.
    async fn lane(self: Arc<Self>, key: String, head: Held, undecided: Undecided) {
        let mut first = head.0.message.clone();
        let mut left = self.live(&head.0, head.1, undecided).await;
        while let Some((next, permit)) = self.lanes.next(&key) {
            left = match left {
                Left::Back if next.message.id != first.id => self.give_back(&next, permit).await,
                Left::Back | Left::Removed => {
                    first = next.message.clone();
                    self.live(&next, permit, self.progress.expect()).await
                }
            };
        }
    }

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.drain.cancelled() => {}
        }
    }

    pub(crate) fn now(&self) -> Mono {
        self.subscription.clock.mono()
    }

    pub(crate) fn name(&self) -> &str {
        &self.subscription.name
    }

    fn status(&self) -> SubscriptionStatus {
        let (condition, problem) = self.health.get();
        SubscriptionStatus {
            name: self.name().to_owned(),
            condition,
            problem,
            in_flight: self.progress.in_flight(),
            oldest_in_progress: self.progress.oldest(self.now()),
            handler: self.subscription.handler.begin().name().to_owned(),
        }
    }
}
