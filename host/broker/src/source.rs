//! Receiving from a queue, and settling.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, Counter, LeaseSetting, Ordering, ReceiveError, Settlement,
    Source, Unsettled,
};
use pumphouse_contract::{Attempt, Counted, Delivery, Lease};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::broker::{Backing, Broker};
use crate::error::StoreError;
use crate::ledger::Grant;
use crate::limits::{BATCH, LONGEST_DELAY, LONGEST_LEASE, LONGEST_WAIT};
use crate::ops::{self, Op};
use crate::queue::Queue;
use crate::settling::{Batch, Claim};
use crate::store::Span;
use crate::writer::Writer;

/// What a queue of the embedded broker can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    system: "pumphouse",
    receive_batch: BATCH,
    settle_batch: BATCH,
    settle_linger: Duration::ZERO,
    receive_linger: Duration::ZERO,
    longest_wait: LONGEST_WAIT,
    longest_delay: LONGEST_DELAY,
    delay_counts_from_receive: false,
    longest_lease: LONGEST_LEASE,
    lease_setting: LeaseSetting::OnReceive,
    undispatched_release_counts: true,
    counter: Counter::Exact,
    count_advances: true,
    ordering: Ordering::Key,
    batch_may_hold_followers: false,
};

/// A queue as a pump sees it.
pub(crate) struct QueueSource {
    broker: Broker,
    name: String,
    queue: OnceLock<Arc<Queue>>,
    interrupted: CancellationToken,
}

impl QueueSource {
    pub(crate) fn new(broker: Broker, name: &str) -> Self {
        Self {
            broker,
            name: name.to_owned(),
            queue: OnceLock::new(),
            interrupted: CancellationToken::new(),
        }
    }

    fn queue(&self) -> Option<&Arc<Queue>> {
        match self.queue.get() {
            Some(queue) => Some(queue),
            None => {
                let queue = self.broker.0.queues.get(&self.name)?;
                Some(self.queue.get_or_init(|| queue))
            }
        }
    }

    fn unavailable(&self, error: &StoreError) -> ReceiveError {
        ReceiveError::Unavailable(self.name.clone(), error.to_string())
    }

    async fn poll(&self, ask: Ask) -> Result<Vec<Delivery>, ReceiveError> {
        let missing = || ReceiveError::Missing(self.name.clone(), "no queue has that name".into());
        let queue = self.queue().ok_or_else(missing)?;
        if ask.lease > LONGEST_LEASE {
            let text = format!("a lease of {:?} is longer than 12 hours", ask.lease);
            return Err(ReceiveError::Other(self.name.clone(), text));
        }
        let clock = self.broker.0.clock.as_ref();
        let end = clock.mono().plus(ask.wait.min(LONGEST_WAIT));
        loop {
            // Listening begins before looking, so that nothing comes in between unheard.
            let mut changed = pin!(queue.changed());
            changed.as_mut().enable();
            let taken = self.look(queue, &ask).await.map_err(|error| self.unavailable(&error))?;
            let now = clock.mono();
            if !taken.is_empty() || now >= end || self.interrupted.is_cancelled() {
                return Ok(taken);
            }
            let due = queue.read(|ledger| ledger.next_due());
            let pause = due.map_or(end, |due| due.min(end)).since(now);
            tokio::select! {
                () = changed => {}
                () = self.interrupted.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// What is there now.
    async fn look(&self, queue: &Arc<Queue>, ask: &Ask) -> Result<Vec<Delivery>, StoreError> {
        self.broker.0.usable()?;
        match &self.broker.0.backing {
            Backing::Memory => Ok(self.take_in_memory(queue, ask)),
            Backing::Durable(writer) => self.take_durably(writer, queue, ask).await,
        }
    }

    fn take_in_memory(&self, queue: &Queue, ask: &Ask) -> Vec<Delivery> {
        let (now, wall) = (self.broker.0.clock.mono(), self.broker.0.clock.wall());
        let lease = Lease::from(now, ask.lease);
        let grants = queue.change(|ledger| {
            let grants = ledger.take(now, wall, ask.max.clamp(1, BATCH));
            grants.iter().for_each(|grant| ledger.grant(grant.sequence, lease.until));
            grants
        });
        self.deliveries(grants, lease)
    }

    async fn take_durably(
        &self,
        writer: &Writer,
        queue: &Arc<Queue>,
        ask: &Ask,
    ) -> Result<Vec<Delivery>, StoreError> {
        // Not only when there is something to take: a pump must see that its broker is down.
        if let Some(problem) = writer.problem() {
            return Err(problem.clone());
        }
        let clock = self.broker.0.clock.as_ref();
        if !queue.change(|ledger| ledger.any_ready(clock.mono())) {
            return Ok(Vec::new());
        }
        let permit = writer.reserve().await?;
        let (now, wall) = (clock.mono(), clock.wall());
        let lease = Lease::from(now, ask.lease);
        let grants = queue.change(|ledger| ledger.take(now, wall, ask.max.clamp(1, BATCH)));
        if grants.is_empty() {
            return Ok(Vec::new());
        }
        let (reply, answer) = oneshot::channel();
        permit.send(Op::Lease(ops::Lease {
            queue: Arc::clone(queue),
            grants,
            until: lease.until,
            span: Span { from: wall, length: ask.lease },
            reply,
        }));
        Ok(self.deliveries(writer.answer(answer).await?, lease))
    }

    fn deliveries(&self, grants: Vec<Grant>, lease: Lease) -> Vec<Delivery> {
        let opening = self.broker.0.opening;
        grants.into_iter().map(|grant| delivery(grant, lease, opening)).collect()
    }

    async fn settle_batch(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        if let Err(closed) = self.broker.0.usable() {
            return Batch::untouched(batch).answers(Err(closed));
        }
        let Some(queue) = self.queue() else {
            return Batch::foreign(batch).answers(Ok(()));
        };
        match &self.broker.0.backing {
            Backing::Memory => self.settle_in_memory(queue, batch),
            Backing::Durable(writer) => self.settle_durably(writer, queue, batch).await,
        }
    }

    fn settle_in_memory(
        &self,
        queue: &Queue,
        batch: Vec<Settlement>,
    ) -> Vec<Result<(), Unsettled>> {
        let now = self.broker.0.clock.mono();
        let batch = queue.change(|ledger| {
            let (batch, held) = Batch::hold(ledger, batch, self.broker.0.opening, now);
            held.iter().for_each(|held| held.carry_out(ledger));
            batch
        });
        batch.answers(Ok(()))
    }

    async fn settle_durably(
        &self,
        writer: &Writer,
        queue: &Arc<Queue>,
        batch: Vec<Settlement>,
    ) -> Vec<Result<(), Unsettled>> {
        let permit = match writer.reserve().await {
            Ok(permit) => permit,
            Err(error) => return Batch::untouched(batch).answers(Err(error)),
        };
        let clock = self.broker.0.clock.as_ref();
        let (mono, now) = (clock.mono(), clock.wall());
        let (batch, held) =
            queue.change(|ledger| Batch::hold(ledger, batch, self.broker.0.opening, mono));
        if held.is_empty() {
            return batch.answers(Ok(()));
        }
        let (reply, answer) = oneshot::channel();
        permit.send(Op::Settle(ops::Settle { queue: Arc::clone(queue), held, now, reply }));
        batch.answers(writer.answer(answer).await)
    }
}

fn delivery(grant: Grant, lease: Lease, opening: u32) -> Delivery {
    let claim = Claim { opening, count: grant.count, sequence: grant.sequence };
    Delivery {
        message: grant.message.unwrap_or_default(),
        undecodable: grant.undecodable,
        // Counted from 1, in the transaction that delivers.
        counted: Attempt::from_wire(grant.count.into()).map_or(Counted::Unreported, Counted::Exact),
        first_received_at: Some(grant.first_received_at),
        lease,
        receipt: claim.receipt(),
    }
}

impl Source for QueueSource {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.poll(ask))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(self.settle_batch(batch))
    }

    /// Nothing is in the air: a message is taken whole, or not at all.
    fn interrupt(&self) {
        self.interrupted.cancel();
    }

    /// There is no connection to let go of; the broker is closed by itself.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
