//! One task settles for a whole pump: it gathers a batch, asks the broker, looks at every entry of the answer,
//! and tries again what may still succeed within its lease.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::ports::{
    Action, BoxFuture, Event, Failure, Observer, Settlement, Source, Unsettled,
};
use pumphouse_contract::{Clock, Lease, Mono};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::progress::Progress;

/// Settlements that wait for the settler; past it, a handler's permit stays taken.
const QUEUE: usize = 1024;
/// Requests to the broker at once.
const IN_FLIGHT: usize = 8;
/// Before the first repetition. Three tries then span more than a second, which a connection that is made anew takes
/// on a busy machine.
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// How much longer each further pause is.
const LONGER: u32 = 3;

/// What came of a settlement: nothing to say, or how it failed and what the broker said.
pub(crate) type Settled = Result<(), (Failure, String)>;

pub(crate) struct Pending {
    settlement: Settlement,
    lease: Lease,
    asked: Mono,
    done: oneshot::Sender<Settled>,
}

/// A settlement that is handed in, or will be when there is room for it.
pub(crate) struct HandedIn<'a> {
    /// To be awaited first.
    pub(crate) room: Option<BoxFuture<'a, ()>>,
    pub(crate) answer: oneshot::Receiver<Settled>,
}

/// Where deliveries hand in their settlements.
#[derive(Clone)]
pub(crate) struct Desk {
    queue: mpsc::Sender<Pending>,
    clock: Arc<dyn Clock>,
}

impl Desk {
    /// Hands in a settlement. Where there is no room for it yet, it is handed in by what comes with the answer.
    pub(crate) fn hand_in(&self, settlement: Settlement, lease: Lease) -> HandedIn<'_> {
        let (done, answer) = oneshot::channel();
        let pending = Pending { settlement, lease, asked: self.clock.mono(), done };
        // A settler that is gone drops the sender, which the receiver sees.
        let full = match self.queue.try_send(pending) {
            Err(TrySendError::Full(pending)) => Some(pending),
            Ok(()) | Err(TrySendError::Closed(_)) => None,
        };
        let room = full.map(|pending| -> BoxFuture<'_, ()> {
            Box::pin(async { drop(self.queue.send(pending).await) })
        });
        HandedIn { room, answer }
    }
}

/// The bounds of settling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) tries: u32,
}

pub(crate) struct Settler {
    queue: mpsc::Receiver<Pending>,
    worker: Worker,
    progress: Arc<Progress>,
    in_flight: Arc<Semaphore>,
}

#[derive(Clone)]
struct Worker {
    source: Arc<dyn Source>,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    bounds: Bounds,
}

impl Settler {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
        progress: Arc<Progress>,
        bounds: Bounds,
    ) -> (Desk, Self) {
        let (sender, queue) = mpsc::channel(QUEUE);
        let desk = Desk { queue: sender, clock: clock.clone() };
        let worker = Worker { source, observer, clock, bounds };
        (desk, Self { queue, worker, progress, in_flight: Arc::new(Semaphore::new(IN_FLIGHT)) })
    }

    /// Settles until every desk is gone.
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let batch = self.gather(first).await;
            let Ok(slot) = self.in_flight.clone().acquire_owned().await else { return };
            let worker = self.worker.clone();
            tokio::spawn(async move {
                worker.settle(batch).await;
                drop(slot);
            });
        }
    }

    /// A full batch, or what came within the linger; less where nobody else is on the way.
    async fn gather(&mut self, first: Pending) -> Vec<Pending> {
        let capabilities = *self.worker.source.capabilities();
        let until = Instant::now() + capabilities.settle_linger;
        let mut batch = Vec::with_capacity(capabilities.settle_batch.min(64));
        batch.push(first);
        while batch.len() < capabilities.settle_batch {
            if let Ok(next) = self.queue.try_recv() {
                batch.push(next);
            } else if capabilities.settle_linger.is_zero() || self.progress.undecided() == 0 {
                break;
            } else {
                match timeout_at(until, self.queue.recv()).await {
                    Ok(Some(next)) => batch.push(next),
                    Ok(None) | Err(_) => break,
                }
                // What can end now ends first. Woken by each, this would run once for every message.
                yield_now().await;
            }
        }
        batch
    }
}

impl Worker {
    /// Settles a batch to its end. Runs in a task of its own, which nothing drops.
    async fn settle(&self, mut batch: Vec<Pending>) {
        let mut pause = RETRY_AFTER;
        for tried in 1..=self.bounds.tries.max(1) {
            batch = self.attempt(batch, tried).await;
            if batch.is_empty() {
                return;
            }
            sleep(pause).await;
            pause = pause.saturating_mul(LONGER);
        }
    }

    /// Asks once; gives back what is to be asked again.
    async fn attempt(&self, batch: Vec<Pending>, tried: u32) -> Vec<Pending> {
        let asked: Vec<Settlement> = batch.iter().map(|p| p.settlement.clone()).collect();
        let answers = match timeout(self.bounds.timeout, self.source.settle(asked)).await {
            Ok(answers) => answers,
            Err(_) => batch.iter().map(|p| Err(no_answer(p.settlement.clone()))).collect(),
        };
        let mut answers = VecDeque::from(answers);
        let mut again = Vec::new();
        for pending in batch {
            match answers.pop_front().unwrap_or_else(|| Err(no_answer(pending.settlement.clone())))
            {
                Ok(()) => self.finish(pending, Ok(())),
                Err(unsettled) if self.may_try_again(&unsettled, &pending, tried) => {
                    again.push(Pending { settlement: unsettled.settlement, ..pending });
                }
                Err(unsettled) => self.finish(pending, Err((unsettled.failure, unsettled.text))),
            }
        }
        again
    }

    fn may_try_again(&self, unsettled: &Unsettled, pending: &Pending, tried: u32) -> bool {
        match unsettled.failure {
            Failure::Retry => {
                tried < self.bounds.tries && !pending.lease.left(self.clock.mono()).is_zero()
            }
            Failure::Gone | Failure::Refused => false,
        }
    }

    fn finish(&self, pending: Pending, settled: Settled) {
        let action = match pending.settlement.action {
            Action::Ack => "ack",
            Action::Release(_) => "release",
        };
        self.observer.record(Event::Settled {
            action,
            failure: settled.as_ref().err().map(|(failure, _)| *failure),
            took: self.clock.mono().since(pending.asked),
        });
        // Who handed it in may be gone by then.
        let _ = pending.done.send(settled);
    }
}

fn no_answer(settlement: Settlement) -> Unsettled {
    Unsettled { settlement, failure: Failure::Retry, text: "no answer in time".to_owned() }
}
