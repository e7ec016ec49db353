//! What is held: extended before its lease ends, and given back where it can't stay.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::ReceivedMessage;
use pumphouse_contract::Mono;
use tokio::time::{MissedTickBehavior, interval};

use super::Stream;
use super::lane::Pushed;
use super::shelf::{Arrived, Due, Left, Lost, Returns, Tried};
use crate::settle::{BATCH, seconds};

/// How often leases are looked at.
const TICK: Duration = Duration::from_millis(500);

/// The subscriptions whose surplus was warned of.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Stream {
    /// Takes what was pushed.
    pub(super) async fn pushed(&self, messages: Vec<ReceivedMessage>) {
        let now = self.now();
        let until = now.plus(self.lease);
        let pushed =
            messages.into_iter().map(|received| Pushed { received, at: now, from: now, until });
        let pushed = pushed.collect();
        let order = self.returning.lock().await;
        let arrived = self.state().shelf.push(pushed, now);
        self.changed.notify_waiters();
        self.arrived(arrived).await;
        drop(order);
    }

    /// Says what came of a push, and gives back what can't stay.
    async fn arrived(&self, arrived: Arrived) {
        if arrived.duplicates > 0 {
            let messages = arrived.duplicates;
            self.duplicates
                .fetch_add(u64::try_from(messages).unwrap_or(u64::MAX), Ordering::Relaxed);
            tracing::debug!(
                subscription = self.name(),
                messages,
                "delivered again while it is handled"
            );
        }
        if arrived.surplus > 0 {
            self.warn_of_surplus();
        }
        self.give_back(arrived.back).await;
    }

    fn warn_of_surplus(&self) {
        let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(self.name().to_owned()) {
            tracing::warn!(
                subscription = self.name(),
                "more messages are pushed than may be held; those beyond it are given back, which counts as a \
                 delivery of each"
            );
        }
    }

    /// Gives back, in order and in as few requests as can be.
    pub(super) async fn give_back(&self, back: Returns) {
        for (delay, ids) in back.0 {
            for piece in ids.chunks(BATCH) {
                let failed = self.settler.modify(piece.to_vec(), seconds(delay)).await;
                self.say_unreturned(failed.len());
            }
        }
    }

    pub(super) fn say_unreturned(&self, messages: usize) {
        if messages > 0 {
            tracing::error!(
                subscription = self.name(),
                messages,
                "held messages could not be given back; they come again when their leases end"
            );
        }
    }

    /// These will not be settled: what is held of their keys goes back.
    pub(super) async fn give_up(&self, ack_ids: &[String], lost: Lost) {
        let order = self.returning.lock().await;
        for id in ack_ids {
            let back = self.state().shelf.lost(id, lost, self.now());
            self.give_back(back).await;
        }
        drop(order);
    }

    /// A message went back, or did not.
    pub(super) async fn went_back(&self, ack_id: &str, left: Left) {
        let order = self.returning.lock().await;
        let arrived = self.state().shelf.released(ack_id, left, self.now());
        self.arrived(arrived).await;
        drop(order);
    }

    /// Extends leases; says of each whether, and until when.
    pub(super) async fn extend(&self, ids: Vec<String>) -> (Tried, Mono) {
        let from = self.now();
        let until = from.plus(self.lease);
        let mut tried = Tried::new();
        for piece in ids.chunks(BATCH) {
            let failed = self.settler.modify(piece.to_vec(), seconds(self.lease)).await;
            tried.extend(piece.iter().map(|id| (id.clone(), !failed.contains_key(id))));
        }
        self.state().shelf.extended(&tried, from, until);
        let messages = tried.values().filter(|extended| **extended).count();
        let asked = tried.len();
        tracing::debug!(subscription = self.name(), asked, messages, "leases extended");
        (tried, until)
    }

    /// Looks after what is held, until it is dropped.
    pub(super) async fn keep(&self) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let order = self.returning.lock().await;
            let Due { extend, back, lapsed } = self.state().shelf.due(self.now(), self.need);
            if lapsed > 0 {
                tracing::debug!(subscription = self.name(), messages = lapsed, "leases ended");
                self.changed.notify_waiters();
            }
            self.give_back(back).await;
            drop(order);
            if !extend.is_empty() {
                self.extend(extend).await;
            }
        }
    }

    /// Gives back all that is held.
    pub(super) async fn give_all_back(&self) {
        let order = self.returning.lock().await;
        let back = self.state().shelf.close(self.now());
        self.give_back(back).await;
        drop(order);
    }
}
