//! A source or a sink with a tap: what passes is noted, and a case may let some of it be lost.
//!
//! What a tap loses, it loses where the port meets the pump. On rows with sockets a proxy does it there instead.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::{
    Action, Ask, BoxFuture, Capabilities, Depth, Failure, PublishError, ReceiveError, Settlement,
    Sink, Source, Unsettled,
};
use pumphouse_contract::{Delivery, Outgoing, Receipt};
use tokio::time::sleep;

use crate::recorder::tag;

/// One settlement as the source answered it.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) tag: String,
    pub(crate) action: Action,
    pub(crate) receipt: Receipt,
    pub(crate) failed: Option<Failure>,
}

#[derive(Debug, Default)]
struct Pages {
    asks: Vec<Ask>,
    deliveries: Vec<Delivery>,
    batches: Vec<usize>,
    tags: HashMap<Receipt, String>,
    settled: Vec<Settled>,
}

/// What is to go wrong. Each number counts down.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Settlements that are answered as done and never passed on: no call is made.
    pub(crate) swallow: AtomicUsize,
    /// Acknowledgements that fail, not passed on.
    pub(crate) fail_acks: AtomicUsize,
    /// Releases that fail, not passed on.
    pub(crate) fail_releases: AtomicUsize,
    /// Answers with messages that never arrive.
    pub(crate) lose: AtomicUsize,
    /// While set, what was received is not handed over.
    pub(crate) hold: AtomicBool,
    /// How many messages were kept so.
    pub(crate) held: AtomicUsize,
}

fn take(number: &AtomicUsize) -> bool {
    number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

/// A source that notes what passes.
pub(crate) struct Tap {
    inner: Arc<dyn Source>,
    pages: Mutex<Pages>,
    pub(crate) script: Script,
}

impl Tap {
    pub(crate) fn new(inner: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self { inner, pages: Mutex::default(), script: Script::default() })
    }

    fn pages(&self) -> std::sync::MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asks(&self) -> Vec<Ask> {
        self.pages().asks.clone()
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.pages().deliveries.clone()
    }

    /// How many messages each receive brought, of those that brought any.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.pages().batches.clone()
    }

    pub(crate) fn settled(&self) -> Vec<Settled> {
        self.pages().settled.clone()
    }

    /// The releases of a message that were done, by their delays.
    pub(crate) fn releases(&self, tag: &str) -> Vec<Duration> {
        let done = |one: &Settled| match one.action {
            Action::Release(after) if one.tag == tag && one.failed.is_none() => Some(after),
            Action::Release(_) | Action::Ack => None,
        };
        self.pages().settled.iter().filter_map(done).collect()
    }

    async fn receive_and_note(&self, ask: Ask) -> Result<Vec<Delivery>, ReceiveError> {
        self.pages().asks.push(ask);
        let received = self.inner.receive(ask).await?;
        if received.is_empty() || take(&self.script.lose) {
            return Ok(Vec::new());
        }
        if self.script.hold.load(Ordering::SeqCst) {
            self.script.held.fetch_add(received.len(), Ordering::SeqCst);
        }
        while self.script.hold.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5)).await;
        }
        let mut pages = self.pages();
        pages.batches.push(received.len());
        for delivery in &received {
            pages.tags.insert(delivery.receipt.clone(), tag(&delivery.message.body));
        }
        pages.deliveries.extend(received.iter().cloned());
        Ok(received)
    }

    async fn settle_and_note(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        let mut answers: Vec<Option<Result<(), Unsettled>>> = Vec::new();
        let mut passed = Vec::new();
        for settlement in batch.clone() {
            let answer = self.spoiled(&settlement);
            if answer.is_none() {
                passed.push(settlement);
            }
            answers.push(answer);
        }
        let asked = if passed.is_empty() { Vec::new() } else { self.inner.settle(passed).await };
        let mut real = asked.into_iter();
        let answers: Vec<_> =
            answers.into_iter().filter_map(|answer| answer.or_else(|| real.next())).collect();
        for (settlement, answer) in batch.iter().zip(&answers) {
            self.note(settlement, answer);
        }
        answers
    }

    /// The answer to a settlement that is not passed on.
    fn spoiled(&self, settlement: &Settlement) -> Option<Result<(), Unsettled>> {
        if take(&self.script.swallow) {
            return Some(Ok(()));
        }
        let fails = match settlement.action {
            Action::Ack => take(&self.script.fail_acks),
            Action::Release(_) => take(&self.script.fail_releases),
        };
        fails.then(|| {
            Err(Unsettled {
                settlement: settlement.clone(),
                failure: Failure::Retry,
                text: "lost on the way".to_owned(),
            })
        })
    }

    fn note(&self, settlement: &Settlement, answer: &Result<(), Unsettled>) {
        let mut pages = self.pages();
        let tag = pages.tags.get(&settlement.receipt).cloned().unwrap_or_default();
        let failed = answer.as_ref().err().map(|unsettled| unsettled.failure);
        let Settlement { receipt, action } = settlement.clone();
        pages.settled.push(Settled { tag, action, receipt, failed });
    }
}

impl Source for Tap {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.receive_and_note(ask))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(self.settle_and_note(batch))
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// A sink that fails as often as it is told to.
pub(crate) struct Leak {
    inner: Arc<dyn Sink>,
    /// Publishes that fail, not passed on.
    pub(crate) refuse: AtomicUsize,
    /// Publishes that are passed on and never confirmed.
    pub(crate) unconfirmed: AtomicUsize,
}

impl Leak {
    pub(crate) fn new(inner: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self { inner, refuse: AtomicUsize::new(0), unconfirmed: AtomicUsize::new(0) })
    }

    fn error(&self, text: &str) -> PublishError {
        PublishError::Unavailable(self.inner.name().to_owned(), text.to_owned())
    }

    async fn pass(&self, message: Outgoing) -> Result<String, PublishError> {
        if take(&self.refuse) {
            return Err(self.error("lost on the way"));
        }
        let published = self.inner.publish(message).await;
        if take(&self.unconfirmed) {
            return Err(self.error("the confirmation was lost on the way"));
        }
        published
    }
}

impl Sink for Leak {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(self.pass(message))
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        self.inner.depth()
    }
}
