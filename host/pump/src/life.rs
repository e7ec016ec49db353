//! One message's life: admit → call → decide → settle.

use std::sync::atomic::Ordering as Memory;
use std::time::Duration;

use pumphouse_contract::copy::{is_routed_copy, shown, stamped_count};
use pumphouse_contract::ports::{Action, Event, Failure, Invocation, Settlement, Version};
use pumphouse_contract::{
    Admission, Count, Decision, Delivery, Ended, Facts, Reason, Roll, Why, admit,
    after_failed_route, decide,
};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit, oneshot};
use tokio::time::timeout;
use tracing::Instrument;

use crate::duplicates::{Claim, Duplicates, Seen};
use crate::progress::Undecided;
use crate::pump::{Inner, Left};
use crate::route::{Rejecting, Routed};
use crate::settings::Subscription;
use crate::settler::{HandedIn, Settled};

/// What a release keeps below the broker's longest delay, for rounding up to whole seconds and for the way.
const DELAY_MARGIN: Duration = Duration::from_secs(2);

impl Inner {
    pub(crate) async fn give_back(
        &self,
        delivery: &Delivery,
        permit: OwnedSemaphorePermit,
    ) -> Left {
        self.subscription.observer.record(Event::GivenBack);
        drop(permit);
        self.settle(delivery, Action::Release(Duration::ZERO)).await
    }

    /// The life of one message: admit → call → decide → settle.
    ///
    /// Killed at any point before the settlement is answered, the message is still the broker's: its lease lapses
    /// and it comes again. Killed between a confirmed copy and the removal, the copy may come to be there twice.
    ///
    /// What few messages need is boxed: a task has room for all that its message may ever wait for, and is written for
    /// each.
    pub(crate) async fn live(
        &self,
        delivery: &Delivery,
        permit: OwnedSemaphorePermit,
        undecided: Undecided,
    ) -> Left {
        if self.drain.is_cancelled() {
            drop(undecided);
            return Box::pin(self.give_back(delivery, permit)).await;
        }
        let _in_progress = self.progress.begin(self.now());
        let count = self.presented(delivery);
        let version = self.subscription.handler.begin();
        let (decision, _claim) = match &self.duplicates {
            Some(duplicates) if delivery.undecodable.is_none() => {
                Box::pin(self.decide_once(duplicates, delivery, count, &*version)).await
            }
            Some(_) | None => (self.decide(delivery, count, &*version).await, None),
        };
        let action = match decision {
            Decision::Ack => Action::Ack,
            Decision::Release { after, shortened } => {
                self.note_shortened(shortened, after, delivery);
                Action::Release(after)
            }
            Decision::Route(reason, why) => {
                Box::pin(self.route(delivery, count, reason, &why, &*version)).await
            }
        };
        drop(undecided);
        let settled = self.hand_in(delivery, action).await;
        drop(permit);
        self.settled(delivery, action, settled.await)
    }

    /// Admits, calls and decides.
    async fn decide(&self, delivery: &Delivery, count: Count, version: &dyn Version) -> Decision {
        let policy = &self.subscription.settings.policy;
        // Taken out of the match, which would keep what it is about for as long as the call takes.
        let turned = match admit(&self.facts(delivery, count), policy) {
            Admission::Route(reason, why) => Some((reason, why)),
            Admission::Call => None,
        };
        if let Some((reason, why)) = turned {
            self.subscription.observer.record(Event::Turned { reason });
            return Decision::Route(reason, why);
        }
        self.call(delivery, count, version).await
    }

    async fn call(&self, delivery: &Delivery, count: Count, version: &dyn Version) -> Decision {
        let Subscription { name, observer, settings, source_name, .. } = &self.subscription;
        let message = shown(&delivery.message);
        let (source, subscription) = (source_name.clone(), name.clone());
        let invocation = Invocation { message, source, subscription, count };
        let Ok(_tenant) = self.tenant_permit().await else {
            observer.record(Event::GivenBack);
            return self.release_with_backoff(delivery);
        };
        observer.record(Event::Began);
        let began = self.now();
        let ended = tokio::select! {
            biased;
            ended = version.call(invocation) => ended,
            () = self.cut.cancelled() => {
                observer.record(Event::GivenBack);
                return Decision::GIVE_BACK;
            }
        };
        let took = self.now().since(began);
        let Ended { result, usage } = ended;
        // The facts are taken again: the handler's time counts for the window and for the longest delay.
        let decision = decide(&result, &self.facts(delivery, count), &settings.policy, roll());
        let fault = result.err();
        if let Some(fault) = &fault {
            self.log_fault(fault, delivery, version);
        }
        let fault = fault.map(|fault| fault.kind);
        observer.record(Event::Handled { decision: &decision, fault, count, took, usage });
        decision
    }

    /// The tenant's leave to call, within what the lease keeps for waiting (C-18). None is needed without a limit.
    async fn tenant_permit(&self) -> Result<Option<SemaphorePermit<'_>>, ()> {
        let Some(tenant) = &self.subscription.tenant else { return Ok(None) };
        let patience = self.subscription.settings.lease.queue_wait;
        if let Ok(permit) = tenant.try_acquire() {
            return Ok(Some(permit));
        }
        match Box::pin(timeout(patience, tenant.acquire())).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) | Err(_) => Err(()),
        }
    }

    /// Seen → handle → mark (S-5). The right to handle it is to be kept until it is settled.
    async fn decide_once<'a>(
        &self,
        duplicates: &'a Duplicates,
        delivery: &Delivery,
        count: Count,
        version: &dyn Version,
    ) -> (Decision, Option<Box<Claim<'a>>>) {
        match self.seen(duplicates, delivery).await {
            Ok(claim) => {
                let decision = self.decide(delivery, count, version).await;
                let decision = self.commit(decision, &claim, delivery).await;
                (decision, Some(Box::new(claim)))
            }
            Err(decision) => (decision, None),
        }
    }

    /// The right to handle the message; what is to become of it, where it was handled before.
    async fn seen<'a>(
        &self,
        duplicates: &'a Duplicates,
        delivery: &Delivery,
    ) -> Result<Claim<'a>, Decision> {
        let patience = self.subscription.settings.lease.queue_wait;
        match duplicates.look(&delivery.message, patience).await {
            Ok(Seen::First(claim)) => Ok(claim),
            Ok(Seen::Before) => {
                self.subscription.observer.record(Event::Duplicate);
                Err(Decision::Ack)
            }
            Ok(Seen::Running) => {
                self.subscription.observer.record(Event::GivenBack);
                Err(Decision::Release { after: patience, shortened: false })
            }
            Err(error) => {
                self.log_state(&error, delivery);
                Err(self.release_with_backoff(delivery))
            }
        }
    }

    /// The mark comes before the acknowledgement; a store that fails never acknowledges (S-5).
    async fn commit(&self, decision: Decision, claim: &Claim<'_>, delivery: &Delivery) -> Decision {
        if decision != Decision::Ack {
            return decision;
        }
        match claim.mark().await {
            Ok(()) => decision,
            Err(error) => {
                self.log_state(&error, delivery);
                self.release_with_backoff(delivery)
            }
        }
    }

    /// Publishes the copy; what is left to do with the original.
    async fn route(
        &self,
        delivery: &Delivery,
        count: Count,
        reason: Reason,
        why: &Why,
        version: &dyn Version,
    ) -> Action {
        let digest = version.digest();
        let by = format!("{}@{}", version.name(), digest.get(..12).unwrap_or(digest));
        let message = &delivery.message;
        let rejecting = Rejecting { message, count, reason, why, by: &by };
        let routed = rejecting.route(&self.subscription).instrument(self.span(delivery));
        match routed.await {
            Routed::Remove => Action::Ack,
            Routed::Keep => {
                let policy = &self.subscription.settings.policy;
                let facts = self.facts(delivery, count);
                Action::Release(after_failed_route(&facts, policy, roll()))
            }
        }
    }

    pub(crate) async fn settle(&self, delivery: &Delivery, action: Action) -> Left {
        let settled = self.hand_in(delivery, action).await;
        self.settled(delivery, action, settled.await)
    }

    /// Hands in a settlement. Returns once there is room for it; the answer comes later.
    async fn hand_in(&self, delivery: &Delivery, action: Action) -> oneshot::Receiver<Settled> {
        let settlement = Settlement { receipt: delivery.receipt.clone(), action };
        let HandedIn { room, answer } = self.desk.hand_in(settlement, delivery.lease);
        if let Some(room) = room {
            room.await;
        }
        answer
    }

    fn settled(
        &self,
        delivery: &Delivery,
        action: Action,
        answer: Result<Settled, oneshot::error::RecvError>,
    ) -> Left {
        let failed = match answer {
            Ok(Ok(())) => None,
            Ok(Err((failure, text))) => Some((failure, text)),
            Err(_) => Some((Failure::Retry, "the pump ended before it was settled".to_owned())),
        };
        if let Some((failure, text)) = &failed {
            self.log_unsettled(delivery, action, *failure, text);
        }
        match action {
            Action::Ack if failed.is_none() => Left::Removed,
            Action::Ack | Action::Release(_) => Left::Back,
        }
    }

    /// What the handler is told: the broker's count, or the one stamped in a rejected copy (C-7).
    fn presented(&self, delivery: &Delivery) -> Count {
        if !self.is_copy(delivery) {
            return delivery.counted.count();
        }
        if !self.said_copy.swap(true, Memory::Relaxed) {
            tracing::info!(
                subscription = self.name(),
                "reading rejected copies, which keep the count that they were stamped with"
            );
        }
        stamped_count(&delivery.message.headers)
    }

    fn is_copy(&self, delivery: &Delivery) -> bool {
        self.subscription.settings.honours_copies && is_routed_copy(&delivery.message.headers)
    }

    fn facts<'a>(&self, delivery: &'a Delivery, count: Count) -> Facts<'a> {
        let capabilities = self.subscription.source.capabilities();
        let copy = self.is_copy(delivery);
        let since = delivery.first_received_at.or(delivery.message.published_at);
        Facts {
            count,
            advances: capabilities.count_advances && !copy,
            routed_copy: copy,
            undecodable: delivery.undecodable.as_deref(),
            age: since.map(|since| self.subscription.clock.wall().since(since)),
            longest_release: self.longest_release(delivery),
        }
    }

    fn longest_release(&self, delivery: &Delivery) -> Duration {
        let capabilities = self.subscription.source.capabilities();
        if !capabilities.delay_counts_from_receive {
            return capabilities.longest_delay;
        }
        let used = self.now().since(delivery.lease.received).saturating_add(DELAY_MARGIN);
        capabilities.longest_delay.saturating_sub(used)
    }

    fn release_with_backoff(&self, delivery: &Delivery) -> Decision {
        let count = delivery.counted.count();
        let policy = &self.subscription.settings.policy;
        let after = after_failed_route(&self.facts(delivery, count), policy, roll());
        Decision::Release { after, shortened: false }
    }
}

/// Chance, for what is spread.
fn roll() -> Roll {
    Roll::new(rand::random())
}
