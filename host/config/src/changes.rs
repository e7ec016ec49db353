//! What a reload changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::place::Place;
use crate::tenancy::{HandlerConfig, Limits};
use crate::types::{Config, Pubsub, Rocketmq, Sqs, Subscription};

/// A slot of the pool holds at least the default `limits.memory`, in bytes.
const LEAST_MEMORY_BYTES: u64 = 64 << 20;
/// A slot of the pool holds at least the default `limits.table`.
const LEAST_TABLE_ELEMENTS: u32 = 20_000;

/// What came, went and changed, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Only in the new configuration.
    pub started: Vec<String>,
    /// Only in the old one.
    pub stopped: Vec<String>,
    /// In both, and not the same.
    pub restarted: Vec<String>,
}

impl Delta {
    /// Whether nothing came, went or changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.started.is_empty() && self.stopped.is_empty() && self.restarted.is_empty()
    }
}

/// What a reload changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The subscriptions. One whose handler's limits or grants, tenant's limits or transport's section changed
    /// is restarted too; a changed component file is not a change of the configuration.
    pub subscriptions: Delta,
    /// The handlers, by full name.
    pub handlers: Delta,
    /// The tenants whose share changed, or that came or went. Nothing is restarted for that but the subscriptions
    /// that receive at another rate: a share holds from now on.
    pub tenants: Vec<String>,
    /// Keys that are only read when the process starts, and that changed: they are not in force yet. The limits
    /// of memory and tables are among them where they rise above what every slot of the pool is made for.
    pub at_restart: Vec<&'static str>,
}

impl Changes {
    /// Whether the two configurations mean the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
            && self.handlers.is_empty()
            && self.tenants.is_empty()
            && self.at_restart.is_empty()
    }
}

impl Config {
    /// What each slot of the pool is made for, in bytes: the most memory that any handler may use, and no less
    /// than the default limit.
    #[must_use]
    pub fn largest_memory_bytes(&self) -> u64 {
        let each = self.handlers.values().map(|one| one.limits.memory_bytes);
        each.fold(LEAST_MEMORY_BYTES, u64::max)
    }

    /// What each slot of the pool is made for: the most elements that any handler's table may have, and no less
    /// than the default limit.
    #[must_use]
    pub fn largest_table_elements(&self) -> u32 {
        let each = self.handlers.values().map(|one| one.limits.table_elements);
        each.fold(LEAST_TABLE_ELEMENTS, u32::max)
    }

    /// What a tenant says of each call.
    fn limits_of(&self, tenant: &str) -> Option<Limits> {
        self.tenants.get(tenant).map(|one| one.limits)
    }

    /// How many messages a second a tenant's subscriptions receive together, where there is a limit.
    #[must_use]
    pub fn rate_of(&self, tenant: &str) -> Option<u32> {
        self.tenants.get(tenant)?.share.messages_per_second
    }

    /// What becomes of a host that runs `old` when it takes `new`.
    #[must_use]
    pub fn changes(old: &Self, new: &Self) -> Changes {
        let handlers = delta(&parts_of_handlers(old), &parts_of_handlers(new));
        let subscriptions = delta(&parts_of_subscriptions(old), &parts_of_subscriptions(new));
        let tenants = shares(old, new);
        Changes { subscriptions, handlers, tenants, at_restart: at_restart(old, new) }
    }
}

fn delta<T: PartialEq>(old: &BTreeMap<&str, T>, new: &BTreeMap<&str, T>) -> Delta {
    let named = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();
    let changed = |name: &&&str| old.get(*name).is_some_and(|was| Some(was) != new.get(*name));
    Delta {
        started: named(new.keys().filter(|name| !old.contains_key(*name)).collect()),
        stopped: named(old.keys().filter(|name| !new.contains_key(*name)).collect()),
        restarted: named(new.keys().filter(changed).collect()),
    }
}

/// The tenants whose share is another one.
fn shares(old: &Config, new: &Config) -> Vec<String> {
    let share = |config: &Config, name: &str| config.tenants.get(name).map(|one| one.share);
    let names: BTreeSet<&String> = old.tenants.keys().chain(new.tenants.keys()).collect();
    let changed = names.into_iter().filter(|name| share(old, name) != share(new, name));
    changed.cloned().collect()
}

/// A handler with what its tenant says of each call.
fn parts_of_handlers(config: &Config) -> BTreeMap<&str, impl PartialEq + '_> {
    let parts = config.handlers.iter();
    parts.map(|(name, one)| (name.as_str(), (one, config.limits_of(&one.tenant)))).collect()
}

/// A subscription with everything that it is made from.
fn parts_of_subscriptions(config: &Config) -> BTreeMap<&str, Parts<'_>> {
    let parts = config.subscriptions.iter();
    parts.map(|one| (one.name.as_str(), Parts::of(one, config))).collect()
}

#[derive(PartialEq)]
struct Parts<'a> {
    subscription: &'a Subscription,
    handler: Option<&'a HandlerConfig>,
    tenant: Option<Limits>,
    rate: Option<u32>,
    sqs: Option<&'a Sqs>,
    pubsub: Option<&'a Pubsub>,
    rocketmq: Option<&'a Rocketmq>,
}

impl<'a> Parts<'a> {
    fn of(subscription: &'a Subscription, config: &'a Config) -> Self {
        let on = |key| places(subscription).any(|place| place.transport() == key);
        Self {
            subscription,
            handler: config.handlers.get(&subscription.handler),
            tenant: config.limits_of(&subscription.tenant),
            rate: config.rate_of(&subscription.tenant),
            sqs: config.sqs.as_ref().filter(|_| on("sqs")),
            pubsub: config.pubsub.as_ref().filter(|_| on("pubsub")),
            rocketmq: config.rocketmq.as_ref().filter(|_| on("rocketmq")),
        }
    }
}

/// Where a subscription reads and publishes.
pub(crate) fn places(one: &Subscription) -> impl Iterator<Item = &Place> {
    [Some(&one.source), one.dead_letter.as_ref(), one.invalid_message.as_ref()]
        .into_iter()
        .flatten()
}

fn at_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let pairs = [
        ("host.state", old.host.state != new.host.state),
        ("host.admin.listen", old.host.admin_listen != new.host.admin_listen),
        ("host.grace", old.host.grace != new.host.grace),
        ("host.log", old.host.log != new.host.log),
        ("host.pool_slots", old.host.pool_slots != new.host.pool_slots),
        ("host.heavy_slots", old.host.heavy_slots != new.host.heavy_slots),
        ("host.guest_threads", old.host.guest_threads != new.host.guest_threads),
        ("host.resident_handlers", old.host.resident_handlers != new.host.resident_handlers),
        ("host.compile", old.host.compile != new.host.compile),
        ("host.clock_resolution", old.host.clock_resolution != new.host.clock_resolution),
        ("host.http.trust", old.host.http_trust != new.host.http_trust),
        ("host.account_interval", old.host.account_interval != new.host.account_interval),
        ("host.metrics.handlers", old.host.metrics_handlers != new.host.metrics_handlers),
        ("embedded.store", old.embedded.store != new.embedded.store),
        ("limits.memory", new.largest_memory_bytes() > old.largest_memory_bytes()),
        ("limits.table", new.largest_table_elements() > old.largest_table_elements()),
    ];
    pairs.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}
