//! What tenants and handlers used, in a bounded number of series.
//!
//! A series, once shown, is never taken away and never goes back. So a label is given for good, and not to everyone:
//! see [`Book::name_handlers`]. What has no label of its own is summed under [`OTHER`], as what is left of its tenant's
//! account, so that the series of a tenant always add up to it. docs/adr/0015 says why.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pumphouse_contract::{Account, HandlerAccount, TenantStatus};

/// Stands for every handler, or tenant, that has no series of its own.
pub const OTHER: &str = "_other";

/// A handler that makes up one of so many calls, or as much of the processor time, earns one of the later labels.
const BUSY: u64 = 100;

/// The accounts as they are shown.
#[derive(Debug)]
pub(crate) struct Accounts {
    most: usize,
    book: Mutex<Book>,
}

/// One row of every family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) tenant: String,
    pub(crate) handler: String,
    pub(crate) account: Account,
}

/// What is true of a tenant now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) tenant: String,
    pub(crate) instances: u64,
    pub(crate) computing: u64,
    pub(crate) waiting: u64,
    pub(crate) slowed: u64,
}

impl Accounts {
    /// With at most so many handlers, and as many tenants, that have series of their own.
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), book: Mutex::default() }
    }

    pub(crate) fn look(&self, tenants: &[TenantStatus]) {
        self.book().look(self.most, tenants);
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.book().rows()
    }

    pub(crate) fn moments(&self) -> Vec<Moment> {
        let book = self.book();
        let own = book.tenants.values().map(|tenant| tenant.moment.clone());
        own.chain((book.rest_tenants > 0).then(|| book.moment.clone())).collect()
    }

    /// Whether this handler has series of its own.
    pub(crate) fn has(&self, handler: &str) -> bool {
        let book = self.book();
        let tenant = handler.split_once('/').map_or("", |(tenant, _)| tenant);
        book.tenants.get(tenant).is_some_and(|tenant| tenant.handlers.contains_key(handler))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Book {
    /// Those that have a label.
    tenants: BTreeMap<String, TenantSeries>,
    /// The calls and the processor time of what has none, at the last look.
    before: BTreeMap<String, Use>,
    /// How many handlers have a label.
    labelled: usize,
    /// What tenants without a label used.
    rest: Account,
    rest_tenants: usize,
    moment: Moment,
}

#[derive(Debug, Default)]
struct TenantSeries {
    handlers: BTreeMap<String, HandlerSeries>,
    other: Account,
    /// The largest memories of handlers without a label, and all that is only true now.
    moment: Moment,
}

#[derive(Debug, Default)]
struct HandlerSeries {
    /// The account at the last look.
    last: Account,
    shown: Account,
}

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    calls: u64,
    cpu: Duration,
}

impl Use {
    fn of(account: &Account) -> Self {
        Self { calls: account.calls.saturating_add(account.dropped), cpu: account.cpu }
    }

    fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            cpu: self.cpu.saturating_sub(before.cpu),
        }
    }

    fn is_nothing(self) -> bool {
        self.calls == 0 && self.cpu.is_zero()
    }

    /// Whether it is a part of `all` that is worth a label.
    fn is_busy_among(self, all: Self) -> bool {
        self.calls.saturating_mul(BUSY) >= all.calls.max(1)
            || self.cpu.saturating_mul(u32::try_from(BUSY).unwrap_or(u32::MAX))
                >= all.cpu.max(Duration::from_nanos(1))
    }
}

/// A handler without a label that was called since the last look.
struct Candidate<'a> {
    tenant: &'a str,
    handler: &'a HandlerAccount,
    lately: Use,
}

impl Book {
    fn look(&mut self, most: usize, tenants: &[TenantStatus]) {
        self.name_tenants(most, tenants);
        self.name_handlers(most, tenants);
        let mut rest = Account::default();
        let mut moment = Moment { tenant: OTHER.to_owned(), ..Moment::default() };
        self.rest_tenants = 0;
        for tenant in tenants {
            if let Some(series) = self.tenants.get_mut(&tenant.name) {
                series.look(tenant);
            } else if !Use::of(&tenant.account).is_nothing() {
                rest = rest.plus(&tenant.account);
                moment.add(tenant);
                self.rest_tenants += 1;
            }
        }
        self.rest = highest(&rest, &self.rest);
        self.moment = moment;
        self.remember(tenants);
    }

    /// A label for every tenant that was ever called, as long as there are labels. One that is too late never gets one.
    fn name_tenants(&mut self, most: usize, tenants: &[TenantStatus]) {
        let mut new: Vec<&TenantStatus> = tenants
            .iter()
            .filter(|one| !self.tenants.contains_key(&one.name))
            .filter(|one| !Use::of(&one.account).is_nothing())
            .collect();
        new.sort_by_key(|one| std::cmp::Reverse(one.account.calls));
        for tenant in new.into_iter().take(most.saturating_sub(self.tenants.len())) {
            self.tenants.insert(tenant.name.clone(), TenantSeries::default());
        }
    }

    /// Gives labels to handlers that were called since the last look, the busiest first. The first half goes to whoever
    /// comes; the second is kept for handlers that make up a hundredth of the calls or of the processor time between
    /// two looks, so that one that is busy later finds a label too.
    fn name_handlers(&mut self, most: usize, tenants: &[TenantStatus]) {
        let (mut candidates, all) = self.candidates(tenants);
        candidates.sort_by_key(|one| std::cmp::Reverse((one.lately.calls, one.lately.cpu)));
        for Candidate { tenant, handler, lately } in candidates {
            let early = self.labelled < most.div_ceil(2);
            if !early && (self.labelled >= most || !lately.is_busy_among(all)) {
                continue;
            }
            // What was counted as another's stays there.
            let elsewhere = self.before.contains_key(&handler.name);
            let last = if elsewhere { handler.account } else { Account::default() };
            let series = HandlerSeries { last, shown: Account::default() };
            if let Some(tenant) = self.tenants.get_mut(tenant) {
                tenant.handlers.insert(handler.name.clone(), series);
                self.labelled += 1;
            }
        }
    }

    /// Who may get a label, and what all handlers together did since the last look.
    fn candidates<'a>(&self, tenants: &'a [TenantStatus]) -> (Vec<Candidate<'a>>, Use) {
        let mut all = Use::default();
        let mut found = Vec::new();
        for tenant in tenants {
            let series = self.tenants.get(&tenant.name);
            for handler in &tenant.handlers {
                let own = series.and_then(|series| series.handlers.get(&handler.name));
                let before = match own {
                    Some(own) => Use::of(&own.last),
                    None => self.before.get(&handler.name).copied().unwrap_or_default(),
                };
                let lately = Use::of(&handler.account).since(before);
                all.calls = all.calls.saturating_add(lately.calls);
                all.cpu = all.cpu.saturating_add(lately.cpu);
                if own.is_none() && series.is_some() && !lately.is_nothing() {
                    found.push(Candidate { tenant: &tenant.name, handler, lately });
                }
            }
        }
        (found, all)
    }

    /// What handlers without a label did so far, which was counted as another's.
    fn remember(&mut self, tenants: &[TenantStatus]) {
        self.before.clear();
        for tenant in tenants {
            let series = self.tenants.get(&tenant.name);
            for handler in &tenant.handlers {
                let own = series.is_some_and(|series| series.handlers.contains_key(&handler.name));
                let used = Use::of(&handler.account);
                if !own && !used.is_nothing() {
                    self.before.insert(handler.name.clone(), used);
                }
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |tenant: &str, handler: &str, account: Account| Row {
            tenant: tenant.to_owned(),
            handler: handler.to_owned(),
            account,
        };
        let mut rows = Vec::new();
        for (name, tenant) in &self.tenants {
            rows.extend(tenant.handlers.iter().map(|(handler, one)| row(name, handler, one.shown)));
            if !Use::of(&tenant.other).is_nothing() {
                rows.push(row(name, OTHER, tenant.other));
            }
        }
        if !Use::of(&self.rest).is_nothing() {
            rows.push(row(OTHER, OTHER, self.rest));
        }
        rows
    }
}

impl TenantSeries {
    fn look(&mut self, tenant: &TenantStatus) {
        let mut own = Account::default();
        let mut rest = Account::default();
        for handler in &tenant.handlers {
            match self.handlers.get_mut(&handler.name) {
                Some(series) => series.look(&handler.account),
                None => rest = rest.plus(&handler.account),
            }
        }
        for series in self.handlers.values() {
            own = own.plus(&series.shown);
        }
        // The sum of the others follows from the tenant's own account, which also has the handlers that are gone.
        let left = tenant.account.with(&own, u64::saturating_sub);
        self.other =
            Account { memory_peak_lately: rest.memory_peak_lately, ..highest(&left, &self.other) };
        self.moment = Moment { tenant: tenant.name.clone(), ..Moment::default() };
        self.moment.add(tenant);
    }
}

impl HandlerSeries {
    fn look(&mut self, account: &Account) {
        self.shown = Account {
            memory_peak: account.memory_peak,
            memory_peak_lately: account.memory_peak_lately,
            instances: account.instances,
            ..self.shown.plus(&account.since(&self.last))
        };
        self.last = *account;
    }
}

impl Moment {
    fn add(&mut self, tenant: &TenantStatus) {
        self.instances += tenant.account.instances;
        self.computing += tenant.computing as u64;
        self.waiting += tenant.waiting as u64;
        self.slowed += u64::from(tenant.slowed);
    }
}

/// The larger of each figure: accounts of a tenant and of its handlers are not read in one moment.
fn highest(now: &Account, before: &Account) -> Account {
    now.with(before, u64::max)
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
