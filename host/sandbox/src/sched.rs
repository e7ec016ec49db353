//! Places that calls wait for: those in which they compute, and those of their instances.
//!
//! Who goes next is decided in [`crate::shares`]; here are the lock, the tasks and the promise that a call which is
//! dropped gives back its place or its turn.

use std::borrow::Borrow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::settings::TenantLimits;
use crate::shares::{Measure, Shares, Short, Terms};

/// Places to compute in for each thread of the guests: enough that a thread whose call pends has another one.
const PLACES_PER_THREAD: usize = 4;
/// Without a limit of its own, a tenant may have this part of a pool's instances.
const DEFAULT_PART: usize = 4;

/// How long a call computes before it makes room for another one of its own tenant. Long beside the cost of a change,
/// short beside a deadline.
const QUANTUM: Duration = Duration::from_millis(5);

/// So many places, shared by all tenants.
#[derive(Debug)]
pub(crate) struct Gate {
    measure: Measure,
    capacity: usize,
    shares: Mutex<Shares<Waker>>,
}

/// The places in which calls compute, by the time that their tenants have used.
pub(crate) fn places(threads: usize) -> Gate {
    Gate::new(Measure::Used, threads.saturating_mul(PLACES_PER_THREAD))
}

/// The places of a pool's instances, by how many their tenants hold.
pub(crate) fn slots(size: usize) -> Gate {
    Gate::new(Measure::Held, size)
}

impl Gate {
    fn new(measure: Measure, capacity: usize) -> Self {
        let shares = Mutex::new(Shares::new(measure, capacity));
        Self { measure, capacity, shares }
    }

    /// Adds a tenant, or changes its limits.
    pub(crate) fn join(&self, tenant: usize, limits: &TenantLimits) {
        let most = match self.measure {
            Measure::Used => limits.runnable,
            Measure::Held => self.quota(limits),
        };
        self.change(|shares| shares.join(tenant, Terms { weight: limits.weight, most }));
    }

    fn quota(&self, limits: &TenantLimits) -> usize {
        limits.instances.unwrap_or(self.capacity / DEFAULT_PART)
    }

    /// How many calls of a tenant have a place, and how many wait for one.
    pub(crate) fn count(&self, tenant: usize) -> (usize, usize) {
        let shares = self.shares();
        (shares.held(tenant), shares.waiting(tenant))
    }

    /// What a tenant's calls wait for.
    pub(crate) fn short(&self, tenant: usize) -> Short {
        self.shares().short(tenant)
    }

    /// Whether somebody waits for a place that this tenant could leave.
    pub(crate) fn wanted(&self, tenant: usize) -> bool {
        self.shares().wanted(tenant)
    }

    /// Changes something, then wakes whoever got a place by it: outside the lock, for that runs the runtime's code.
    fn change<R>(&self, change: impl FnOnce(&mut Shares<Waker>) -> R) -> R {
        let mut shares = self.shares();
        let result = change(&mut shares);
        let mut woken = Vec::new();
        while let Some(waker) = shares.next() {
            woken.push(waker);
        }
        drop(shares);
        woken.into_iter().for_each(Waker::wake);
        result
    }

    fn shares(&self) -> MutexGuard<'_, Shares<Waker>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call's claim to a place: it has none, waits for one, or holds one. Dropping it gives up either.
#[derive(Debug)]
pub(crate) struct Claim<G: Borrow<Gate>> {
    gate: G,
    tenant: usize,
    state: State,
    /// Used since the place was taken.
    ran: Duration,
    short: Option<Short>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Out,
    Waiting(u64),
    Holding,
}

impl<G: Borrow<Gate>> Claim<G> {
    pub(crate) fn new(gate: G, tenant: usize) -> Self {
        Self { gate, tenant, state: State::Out, ran: Duration::ZERO, short: None }
    }

    /// Whose place it is.
    pub(crate) fn tenant(&self) -> usize {
        self.tenant
    }

    /// What was short when it had to wait last; none where it never had to.
    pub(crate) fn short(&self) -> Option<Short> {
        self.short
    }

    /// Takes a place if one is free.
    pub(crate) fn try_take(&mut self) -> bool {
        let took = self.state == State::Out && self.gate.borrow().shares().take(self.tenant);
        if took {
            self.hold();
        }
        self.state == State::Holding
    }

    /// Takes a place as soon as it is this call's turn. Once it is pending it waits until it is ready or dropped.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.state {
            State::Holding => return Poll::Ready(()),
            State::Out => {
                let mut shares = self.gate.borrow().shares();
                if !shares.take(self.tenant) {
                    self.short = Some(shares.short(self.tenant));
                    self.state = State::Waiting(shares.wait(self.tenant, cx.waker().clone()));
                    return Poll::Pending;
                }
            }
            State::Waiting(number) => {
                if let Some(waker) = self.gate.borrow().shares().waiter(self.tenant, number) {
                    waker.clone_from(cx.waker());
                    return Poll::Pending;
                }
            }
        }
        self.hold();
        Poll::Ready(())
    }

    /// Gives the place back after a turn that used so much.
    pub(crate) fn give_back(&mut self, used: Duration) {
        if self.state != State::Holding {
            return;
        }
        self.state = State::Out;
        self.gate.borrow().change(|shares| {
            shares.charge(self.tenant, used);
            shares.give_back(self.tenant);
        });
    }

    /// After a turn that ended with the tick: keeps the place, or gives it to one who should have it and waits.
    pub(crate) fn tick(&mut self, used: Duration, waker: &Waker) {
        if self.state != State::Holding {
            return;
        }
        self.ran += used;
        let (tenant, served) = (self.tenant, self.ran >= QUANTUM);
        let queued = self.gate.borrow().change(|shares| {
            shares.charge(tenant, used);
            let its_own = served && shares.waiting(tenant) > 0;
            if !its_own && !shares.owes(tenant) {
                return None;
            }
            // It queues before it gives the place back: it was not idle.
            let queued = (shares.wait(tenant, waker.clone()), shares.short(tenant));
            shares.give_back(tenant);
            Some(queued)
        });
        if let Some((number, short)) = queued {
            (self.state, self.short) = (State::Waiting(number), Some(short));
        }
    }

    fn hold(&mut self) {
        (self.state, self.ran) = (State::Holding, Duration::ZERO);
    }
}

impl<G: Borrow<Gate>> Drop for Claim<G> {
    fn drop(&mut self) {
        let tenant = self.tenant;
        match self.state {
            State::Out => {}
            State::Holding => self.gate.borrow().change(|shares| shares.give_back(tenant)),
            State::Waiting(number) => self.gate.borrow().change(|shares| {
                // It may have been given a place that it never saw.
                if !shares.leave(tenant, number) {
                    shares.give_back(tenant);
                }
            }),
        }
    }
}
