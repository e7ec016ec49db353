//! Instances that handle more than one message, where a handler's policy says so.
//!
//! An instance serves one version of one handler and nobody else. It is laid to rest after an answer and never after
//! anything else: a fault, a deadline, a cancellation drop it, since they drop what holds it. While it rests it keeps
//! its slot of the pool, and gives it up to a call that finds none free. See docs/adr/0014.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pumphouse_contract::Outcome;
use pumphouse_contract::ports::Invocation;
use wasmtime::Store;

use crate::engine::Profile;
use crate::entry::{Entry, Instance};
use crate::guest::Guest;
use crate::journal::Speaker;
use crate::pool::{Pool, Slot};
use crate::settings::{Instances, Limits};
use crate::tenant::Owner;

/// An instance with what it lives in. Dropping it frees its slot.
pub(crate) struct Live {
    pub(crate) store: Store<Guest>,
    /// None before the first call.
    instance: Option<Instance>,
    made: Instant,
    served: u32,
    /// After the store: a slot is free only when the instance is gone.
    slot: Slot,
}

impl Live {
    /// What an instance is going to be made in.
    pub(crate) fn new(store: Store<Guest>, slot: Slot) -> Self {
        Self { store, instance: None, made: Instant::now(), served: 0, slot }
    }

    /// The number of the tenant whose it is.
    pub(crate) fn tenant(&self) -> usize {
        self.slot.tenant()
    }

    /// Makes the instance, where there is none yet.
    pub(crate) async fn prepare(&mut self, entry: &Entry) -> wasmtime::Result<()> {
        if self.instance.is_none() {
            self.instance = Some(entry.instantiate(&mut self.store).await?);
        }
        Ok(())
    }

    /// Makes it ready for the next message: time, log and account begin anew. What the guest holds, memory and
    /// handles, it goes on holding.
    pub(crate) fn renew(&mut self, speaker: Speaker, deadline: Instant, limits: &Limits) {
        self.store.data_mut().renew(speaker, deadline, limits);
        self.store.set_epoch_deadline(1);
    }

    /// The guest's answer to one message.
    pub(crate) async fn call(&mut self, invocation: &Invocation) -> wasmtime::Result<Outcome> {
        let Some(instance) = &self.instance else {
            return Err(wasmtime::Error::msg("the instance was not made"));
        };
        let outcome = instance.call(&mut self.store, invocation).await?;
        self.served = self.served.saturating_add(1);
        Ok(outcome)
    }
}

/// What a call gets of the pool.
pub(crate) enum Seat {
    /// A slot for a new instance.
    Free(Slot),
    /// An instance with its slot.
    Rested(Live),
}

/// Where the instances of one version rest. Dropping it drops them.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) pool: Arc<Pool>,
    owner: Arc<Owner>,
    id: u64,
    policy: Instances,
}

impl Shelf {
    /// Of a version whose handler has this policy, or none of its own.
    pub(crate) fn new(pool: Arc<Pool>, owner: Arc<Owner>, policy: Option<Instances>) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let default = match pool.profile {
            Profile::Lean => Instances::Fresh,
            Profile::Heavy => Instances::REUSED,
        };
        Self { pool, owner, id: IDS.fetch_add(1, Relaxed), policy: policy.unwrap_or(default) }
    }

    /// What can be had at once.
    pub(crate) fn try_seat(&self) -> Option<Seat> {
        self.wake().map(Seat::Rested).or_else(|| self.pool.try_slot(&self.owner).map(Seat::Free))
    }

    /// An instance that rests, or a slot as soon as it is this tenant's turn.
    pub(crate) async fn seat(&self) -> Seat {
        match self.wake() {
            Some(live) => Seat::Rested(live),
            None => Seat::Free(self.pool.slot(&self.owner).await),
        }
    }

    /// An instance that rests, where the policy has any and one is there.
    fn wake(&self) -> Option<Live> {
        match self.policy {
            Instances::Fresh => None,
            Instances::Reused { .. } => self.pool.wake(self.id),
        }
    }

    /// Keeps an instance that has just answered, as far as the policy goes.
    pub(crate) fn rest(&self, live: Live) {
        let Instances::Reused { messages, age, idle } = self.policy else { return };
        if live.served < messages && live.made.elapsed() < age {
            let until = live.made.checked_add(age);
            self.pool.rest(live, self.id, idle, until);
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.pool.clear(self.id);
    }
}

/// The instances of a pool that rest, the one that was used last at the end. No more than the pool has slots.
#[derive(Default)]
pub(crate) struct Resting(Mutex<Vec<Rested>>);

struct Rested {
    shelf: u64,
    /// None: no end that a clock could show.
    until: Option<Instant>,
    live: Live,
}

impl Rested {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

// What is dropped is dropped outside the lock: to clear an instance's memory takes the kernel some microseconds.
impl Resting {
    /// The one of a shelf that was used last. It knows most, and the others may grow old.
    pub(crate) fn take(&self, shelf: u64, now: Instant) -> Option<Live> {
        let mut rested = self.rested();
        let at = rested.iter().rposition(|one| one.shelf == shelf && !one.is_over(now))?;
        let taken = rested.remove(at);
        drop(rested);
        Some(taken.live)
    }

    /// Adds one, unless its shelf is full or its slot is wanted, which is asked under the lock.
    pub(crate) fn put(
        &self,
        live: Live,
        shelf: u64,
        most: usize,
        until: Option<Instant>,
        wanted: impl Fn() -> bool,
    ) {
        let mut rested = self.rested();
        let there = rested.iter().filter(|one| one.shelf == shelf).count();
        if there < most && !wanted() {
            rested.push(Rested { shelf, until, live });
            return;
        }
        drop(rested);
        drop(live);
    }

    /// Drops the one that has rested longest, of some tenants. False where none of theirs rests.
    pub(crate) fn drop_oldest(&self, of: impl Fn(usize) -> bool) -> bool {
        let mut rested = self.rested();
        let oldest = rested.iter().position(|one| of(one.live.tenant()));
        let oldest = oldest.map(|at| rested.remove(at));
        drop(rested);
        oldest.is_some()
    }

    /// Drops those whose time is over.
    pub(crate) fn sweep(&self, now: Instant) {
        self.drop_where(|one| one.is_over(now));
    }

    /// Drops those of some shelves.
    pub(crate) fn clear(&self, shelf: impl Fn(u64) -> bool) {
        self.drop_where(|one| shelf(one.shelf));
    }

    fn drop_where(&self, over: impl Fn(&Rested) -> bool) {
        let mut rested = self.rested();
        let (gone, kept) = std::mem::take(&mut *rested).into_iter().partition::<Vec<_>, _>(over);
        *rested = kept;
        drop(rested);
        drop(gone);
    }

    fn rested(&self) -> MutexGuard<'_, Vec<Rested>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Resting").field(&self.rested().len()).finish()
    }
}
