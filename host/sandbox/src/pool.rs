//! A pool of instances: the engine that makes them, its clock, its slots, and the instances that rest.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use wasmtime::Engine;

use crate::engine::{self, Profile};
use crate::errors::SandboxError;
use crate::reuse::{Live, Resting};
use crate::sched::{self, Claim, Gate};
use crate::settings::SandboxSettings;
use crate::shares::Short;
use crate::tenant::Owner;
use crate::ticker::Ticker;

/// The instances of one profile.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) profile: Profile,
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    /// How many instances live at once.
    pub(crate) size: usize,
    /// As many as `size`: who has one never finds the pool exhausted.
    pub(crate) slots: Arc<Gate>,
    resting: Resting,
}

impl Pool {
    /// Reserves the pool and starts its clock.
    pub(crate) fn new(profile: Profile, settings: &SandboxSettings) -> Result<Self, SandboxError> {
        let engine = engine::engine(profile, settings)?;
        let size = profile.slots(settings);
        Ok(Self {
            profile,
            ticker: Ticker::start(&engine)?,
            engine,
            size,
            slots: Arc::new(sched::slots(size)),
            resting: Resting::default(),
        })
    }

    /// A slot, where one is free for this owner.
    pub(crate) fn try_slot(&self, owner: &Arc<Owner>) -> Option<Slot> {
        let mut claim = self.claim(owner);
        claim.try_take().then(|| Slot::new(claim, owner))
    }

    /// A slot, as soon as it is this owner's turn. Instances that rest give way.
    ///
    /// May be dropped at any time.
    pub(crate) async fn slot(&self, owner: &Arc<Owner>) -> Slot {
        let (mut claim, tenant) = (self.claim(owner), owner.tenant.id);
        poll_fn(|cx| {
            let mut polled = claim.poll_take(cx);
            // Once it waits nothing is laid to rest that it could have, so that what is freed goes to those who wait.
            while polled.is_pending() && self.make_room(tenant) {
                polled = claim.poll_take(cx);
            }
            polled
        })
        .await;
        Slot::new(claim, owner)
    }

    fn claim(&self, owner: &Owner) -> Claim<Arc<Gate>> {
        Claim::new(self.slots.clone(), owner.tenant.id)
    }

    /// Drops an instance that rests: one of the tenant's own, where it has as many as it may have.
    fn make_room(&self, tenant: usize) -> bool {
        let short = self.slots.short(tenant);
        self.resting.drop_oldest(|of| short == Short::All || of == tenant)
    }

    /// The instance of a shelf that was used last, if one rests whose time is not over.
    pub(crate) fn wake(&self, shelf: u64) -> Option<Live> {
        self.resting.take(shelf, Instant::now())
    }

    /// Keeps an instance for a later message, unless a call waits for its slot or enough of its shelf rest.
    pub(crate) fn rest(&self, live: Live, shelf: u64, most: usize, until: Option<Instant>) {
        let tenant = live.tenant();
        self.resting.put(live, shelf, most, until, || self.slots.wanted(tenant));
    }

    /// Drops what rests on a shelf.
    pub(crate) fn clear(&self, shelf: u64) {
        self.resting.clear(|entry| entry == shelf);
    }

    /// Drops what has rested past its time.
    pub(crate) fn sweep(&self) {
        self.resting.sweep(Instant::now());
    }

    /// Drops all that rests.
    pub(crate) fn empty(&self) {
        self.resting.clear(|_| true);
    }
}

/// The place of one instance in a pool, from before it is made until it is gone. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Slot {
    claim: Claim<Arc<Gate>>,
    owner: Arc<Owner>,
}

impl Slot {
    fn new(claim: Claim<Arc<Gate>>, owner: &Arc<Owner>) -> Self {
        owner.ledgers().iter().for_each(|ledger| ledger.instance_made());
        Self { claim, owner: owner.clone() }
    }

    /// The number of the tenant whose it is.
    pub(crate) fn tenant(&self) -> usize {
        self.claim.tenant()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.owner.ledgers().iter().for_each(|ledger| ledger.instance_dropped());
    }
}
