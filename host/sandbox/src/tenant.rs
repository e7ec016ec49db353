//! The tenants of a sandbox: what each may use, and what it uses.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use pumphouse_contract::{HandlerAccount, TenantStatus};

use crate::demand::Demand;
use crate::ledger::Ledger;
use crate::rate::LogRate;
use crate::sched::Gate;
use crate::settings::TenantLimits;

/// One tenant. Its handlers share it.
#[derive(Debug)]
pub(crate) struct Tenant {
    /// Its number at the gates.
    pub(crate) id: usize,
    pub(crate) name: Arc<str>,
    pub(crate) limits: ArcSwap<TenantLimits>,
    pub(crate) ledger: Ledger,
    pub(crate) demand: Demand,
    log_rate: LogRate,
    /// The ledgers of its handlers. A handler's versions share one, from one load to the next.
    handlers: Mutex<BTreeMap<Arc<str>, Weak<Ledger>>>,
}

impl Tenant {
    fn new(id: usize, name: Arc<str>, limits: TenantLimits) -> Self {
        Self {
            id,
            name,
            ledger: Ledger::new(),
            demand: Demand::new(limits.runnable),
            limits: ArcSwap::from_pointee(limits),
            log_rate: LogRate::default(),
            handlers: Mutex::new(BTreeMap::new()),
        }
    }

    /// The ledger of one of its handlers, which goes on as long as a handler of that name is held.
    pub(crate) fn ledger_of(&self, handler: &str) -> Arc<Ledger> {
        let mut handlers = self.handlers();
        if let Some(ledger) = handlers.get(handler).and_then(Weak::upgrade) {
            return ledger;
        }
        // Now and then, so that a tenant's thousandth handler costs no more than its first.
        if handlers.len().is_power_of_two() {
            handlers.retain(|_, ledger| ledger.strong_count() > 0);
        }
        let ledger = Arc::new(Ledger::new());
        handlers.insert(handler.into(), Arc::downgrade(&ledger));
        ledger
    }

    /// Whether a line of so many bytes may be logged now.
    pub(crate) fn may_log(&self, bytes: usize) -> bool {
        self.log_rate.allows(&self.name, &self.limits.load(), bytes as u64)
    }

    /// A call has waited too long for its turn.
    pub(crate) fn late(&self) {
        self.demand.late(self.limits.load().runnable);
    }

    /// Resolves when there is room for calls, and says for how many; none without a bound.
    pub(crate) async fn welcome(&self) -> Option<NonZeroUsize> {
        self.demand.welcome().await
    }

    fn accounts(&self) -> Vec<HandlerAccount> {
        let handlers: Vec<_> = {
            let held = self.handlers();
            held.iter().filter_map(|(name, it)| Some((name.clone(), it.upgrade()?))).collect()
        };
        let account = |(name, ledger): (Arc<str>, Arc<Ledger>)| HandlerAccount {
            name: name.as_ref().to_owned(),
            account: ledger.read(),
        };
        handlers.into_iter().map(account).collect()
    }

    fn handlers(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Weak<Ledger>>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose an instance is.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) tenant: Arc<Tenant>,
    /// Of the handler.
    pub(crate) ledger: Arc<Ledger>,
}

impl Owner {
    /// The two ledgers in which everything is entered.
    pub(crate) fn ledgers(&self) -> [&Ledger; 2] {
        [&self.ledger, &self.tenant.ledger]
    }
}

/// All tenants that were ever named, or have handlers.
#[derive(Debug)]
pub(crate) struct Tenants {
    /// The places in which calls compute.
    pub(crate) places: Arc<Gate>,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    by_name: BTreeMap<Arc<str>, Arc<Tenant>>,
    /// The pools' gates.
    slots: Vec<Arc<Gate>>,
}

impl Tenants {
    pub(crate) fn new(places: Gate) -> Self {
        Self { places: Arc::new(places), all: Mutex::default() }
    }

    /// Admits all tenants, from now on, to a pool.
    pub(crate) fn share(&self, slots: &Arc<Gate>) {
        let mut all = self.all();
        all.by_name.values().for_each(|tenant| slots.join(tenant.id, &tenant.limits.load()));
        all.slots.push(slots.clone());
    }

    /// Who owns the instances of a handler, by its full name.
    pub(crate) fn owner(&self, handler: &str) -> Arc<Owner> {
        let tenant = self.of_handler(handler);
        let ledger = tenant.ledger_of(handler);
        Arc::new(Owner { tenant, ledger })
    }

    /// The tenant of a handler's full name, `tenant/name`.
    pub(crate) fn of_handler(&self, handler: &str) -> Arc<Tenant> {
        self.get(handler.split_once('/').map_or("", |(tenant, _)| tenant))
    }

    /// The tenant of that name, with the default limits where it is new.
    pub(crate) fn get(&self, name: &str) -> Arc<Tenant> {
        let mut all = self.all();
        if let Some(tenant) = all.by_name.get(name) {
            return tenant.clone();
        }
        let (name, limits): (Arc<str>, _) = (name.into(), TenantLimits::default());
        let tenant = Arc::new(Tenant::new(all.by_name.len(), name.clone(), limits));
        all.by_name.insert(name, tenant.clone());
        self.join(&all, &tenant);
        tenant
    }

    /// Changes what a tenant may use.
    pub(crate) fn set(&self, name: &str, limits: TenantLimits) {
        let tenant = self.get(name);
        let all = self.all();
        tenant.limits.store(Arc::new(limits));
        tenant.demand.resize(limits.runnable);
        self.join(&all, &tenant);
    }

    /// What can be seen of them from outside.
    pub(crate) fn status(&self) -> Vec<TenantStatus> {
        let (tenants, slots): (Vec<_>, _) = {
            let all = self.all();
            (all.by_name.values().cloned().collect(), all.slots.clone())
        };
        tenants.iter().map(|tenant| self.status_of(tenant, &slots)).collect()
    }

    /// Says which log lines were dropped and not told yet.
    pub(crate) fn settle_logs(&self) {
        let tenants: Vec<_> = self.all().by_name.values().cloned().collect();
        tenants.iter().for_each(|tenant| tenant.log_rate.settle(&tenant.name));
    }

    fn status_of(&self, tenant: &Tenant, slots: &[Arc<Gate>]) -> TenantStatus {
        let (computing, waiting) = self.places.count(tenant.id);
        let for_instances = slots.iter().map(|slots| slots.count(tenant.id).1).sum::<usize>();
        TenantStatus {
            name: tenant.name.as_ref().to_owned(),
            account: tenant.ledger.read(),
            handlers: tenant.accounts(),
            weight: tenant.limits.load().weight,
            computing,
            waiting: waiting + for_instances,
            slowed: tenant.demand.is_slowed(),
        }
    }

    fn join(&self, all: &All, tenant: &Tenant) {
        let limits = tenant.limits.load();
        self.places.join(tenant.id, &limits);
        all.slots.iter().for_each(|slots| slots.join(tenant.id, &limits));
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched;

    #[test]
    fn a_handlers_ledger_goes_on_while_it_is_held_and_ends_with_it() {
        let tenants = Tenants::new(sched::places(2));
        let tenant = tenants.of_handler("acme/orders");
        let first = tenant.ledger_of("acme/orders");
        first.enter_dropped();
        assert_eq!(tenant.ledger_of("acme/orders").read().dropped, 1);
        assert_eq!(tenants.status()[0].handlers.len(), 1);
        drop(first);
        assert_eq!(tenants.status()[0].handlers, []);
        assert_eq!(tenant.ledger_of("acme/orders").read().dropped, 0);
    }

    #[test]
    fn limits_reach_the_gates_whichever_came_first() {
        let tenants = Tenants::new(sched::places(2));
        let slots = Arc::new(sched::slots(8));
        let early = tenants.get("early");
        tenants.share(&slots);
        let late = tenants.get("late");
        for tenant in [&early, &late] {
            let takes = || {
                let claims = (0..8).map(|_| sched::Claim::new(slots.clone(), tenant.id));
                let mut claims: Vec<_> = claims.collect();
                claims.iter_mut().map(sched::Claim::try_take).filter(|took| *took).count()
            };
            assert_eq!(takes(), 2, "a quarter of the pool");
            let limits = TenantLimits { instances: Some(5), ..TenantLimits::default() };
            tenants.set(&tenant.name, limits);
            assert_eq!(takes(), 5);
        }
    }
}
