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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tokio::time::{sleep, timeout};

    fn gate(tenants: usize, runnable: usize) -> Arc<Gate> {
        let gate = places(1);
        let limits = TenantLimits { runnable, ..TenantLimits::default() };
        (0..tenants).for_each(|tenant| gate.join(tenant, &limits));
        Arc::new(gate)
    }

    fn claim(gate: &Arc<Gate>, tenant: usize) -> Claim<Arc<Gate>> {
        Claim::new(gate.clone(), tenant)
    }

    async fn take(claim: &mut Claim<Arc<Gate>>) {
        poll_fn(|cx| claim.poll_take(cx)).await;
    }

    #[tokio::test]
    async fn a_place_that_was_given_to_a_call_that_is_dropped_goes_to_the_next() {
        let gate = gate(1, 1);
        let mut first = claim(&gate, 0);
        assert!(first.try_take());
        let (mut second, mut third) = (claim(&gate, 0), claim(&gate, 0));
        for waiting in [&mut second, &mut third] {
            assert!(timeout(Duration::from_millis(1), take(waiting)).await.is_err());
            assert_eq!(waiting.short(), Some(Short::Tenant));
        }
        first.give_back(Duration::ZERO);
        // It has the place and has not seen it.
        assert_eq!(gate.count(0), (1, 1));
        drop(second);
        assert_eq!(gate.count(0), (1, 0));
        timeout(Duration::from_secs(10), take(&mut third)).await.expect("the place");
        drop((first, third));
        assert_eq!(gate.count(0), (0, 0));
    }

    #[tokio::test]
    async fn a_tick_keeps_the_place_until_another_should_have_it() {
        let gate = gate(2, 4);
        let waker = Waker::noop();
        let mut held: Vec<_> = (0..4).map(|_| claim(&gate, 0)).collect();
        assert!(held.iter_mut().all(Claim::try_take));
        for _ in 0..100 {
            held[0].tick(Duration::from_millis(1), waker);
            assert!(held[0].try_take(), "nobody waits");
        }
        let mut other = claim(&gate, 1);
        assert!(timeout(Duration::from_millis(1), take(&mut other)).await.is_err());
        held[1].tick(Duration::from_millis(1), waker);
        assert!(!held[1].try_take(), "the other one had less");
        timeout(Duration::from_secs(10), take(&mut other)).await.expect("the place");
        // Its own calls take turns only after a while.
        held[2].tick(QUANTUM / 2, waker);
        assert!(held[2].try_take());
        held[2].tick(QUANTUM / 2, waker);
        assert!(!held[2].try_take());
    }

    /// Someone computes as long as this lives.
    struct Inside<'a>(&'a AtomicUsize);

    impl<'a> Inside<'a> {
        fn new(inside: &'a AtomicUsize, most: &AtomicUsize) -> Self {
            most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
            Self(inside)
        }
    }

    impl Drop for Inside<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }

    /// Takes a place, computes and ticks or pends, fifty times.
    async fn live(
        call: usize,
        mut claim: Claim<Arc<Gate>>,
        inside: &AtomicUsize,
        most: &AtomicUsize,
    ) {
        for turn in 0..50 {
            take(&mut claim).await;
            let computing = Inside::new(inside, most);
            tokio::task::yield_now().await;
            drop(computing);
            match (call + turn) % 3 {
                0 => claim.give_back(Duration::from_micros(7)),
                _ => claim.tick(Duration::from_millis(1), Waker::noop()),
            }
        }
    }

    /// Calls that take, tick, pend and are dropped at any time: all others get their places, and none is left over.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost() {
        let gate = gate(7, 3);
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let mut calls = tokio::task::JoinSet::new();
        for call in 0..400_usize {
            let (claim, counts) = (claim(&gate, call % 7), counts.clone());
            let patience = match call % 5 {
                0 => Duration::from_micros(call as u64 * 10),
                _ => Duration::from_secs(60),
            };
            calls.spawn(async move {
                timeout(patience, live(call, claim, &counts.0, &counts.1)).await.is_ok()
            });
            if call % 50 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        let ended = calls.join_all().await;
        assert!(ended.iter().filter(|ended| **ended).count() >= 320, "a call was forgotten");
        assert_eq!(counts.1.load(SeqCst), 4, "so many compute at once");
        assert!((0..7).all(|tenant| gate.count(tenant) == (0, 0)));
    }
}
