//! A running host: its subscriptions, and how one is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_config::{Config, DeduplicationKey, Dispatch, Provision, UNCOUNTED};
use pumphouse_contract::findings::budget_unenforceable;
use pumphouse_contract::ports::{Handler, State};
use pumphouse_contract::{Backoff, Clock, Count, Jitter, Roll, SubscriptionFacts};
use pumphouse_pump::{Deduplicate, KeySource, Pace, Pump, Settings, Subscription};
use pumphouse_sandbox::Sandbox;
use pumphouse_telemetry::Metrics;
use tokio::sync::Semaphore;

use crate::host::depths;
use crate::host::handlers::Loaded;
use crate::host::slot::Slot;
use crate::host::transports::{OpenSource, Transports, WireError, Wired};

/// Between attempts to open a subscription whose broker is away.
const OPEN_BACKOFF: Backoff =
    Backoff { base: Duration::from_secs(1), max: Duration::from_secs(30), jitter: Jitter::Full };
/// Between looks at whether a source is still there, and attempts to make it again.
const FURNISH_BACKOFF: Backoff =
    Backoff { base: Duration::from_secs(2), max: Duration::from_secs(30), jitter: Jitter::Full };
/// What one attempt may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest wait of one receive.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);
/// What a receive may take beyond its wait. Less than any transport's own bound, so that one that never returns is
/// counted as a stall on each of them (FR-33).
const RECEIVE_MARGIN: Duration = Duration::from_secs(5);

/// What stays the same over every reload.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sandbox: Sandbox,
    pub(crate) state: Arc<dyn State>,
    pub(crate) metrics: Metrics,
    pub(crate) grace: Duration,
    /// Subscriptions of which F-3 was said.
    said: Arc<Mutex<BTreeSet<String>>>,
}

impl Common {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        sandbox: Sandbox,
        state: Arc<dyn State>,
        metrics: Metrics,
        grace: Duration,
    ) -> Self {
        Self { clock, sandbox, state, metrics, grace, said: Arc::default() }
    }
}

/// One configuration in force.
#[derive(Clone)]
pub(crate) struct InForce {
    pub(crate) config: Arc<Config>,
    pub(crate) transports: Transports,
    pub(crate) handlers: Loaded,
    pub(crate) tenants: BTreeMap<String, Arc<Semaphore>>,
    paces: BTreeMap<String, Arc<Pace>>,
}

impl InForce {
    /// With the permits and the pace of the tenants whose limit stays, so that it also holds over a reload.
    pub(crate) fn new(
        config: Arc<Config>,
        transports: Transports,
        handlers: Loaded,
        before: Option<&Self>,
    ) -> Self {
        let limited = config.tenants.values().filter_map(|tenant| {
            let limit = tenant.limits.concurrency?;
            let kept = before.and_then(|before| before.permits(&tenant.name, limit));
            let permits = kept.unwrap_or_else(|| Arc::new(Semaphore::new(limit as usize)));
            Some((tenant.name.clone(), permits))
        });
        let tenants = limited.collect();
        let paced = config.tenants.keys().filter_map(|tenant| {
            let rate = config.rate_of(tenant)?;
            let kept = before.and_then(|before| before.paces.get(tenant));
            let kept = kept.filter(|pace| pace.per_second() == rate).cloned();
            Some((tenant.clone(), kept.unwrap_or_else(|| Arc::new(Pace::new(rate)))))
        });
        let paces = paced.collect();
        Self { config, transports, handlers, tenants, paces }
    }

    /// The permits of a tenant, where its limit is still this one.
    fn permits(&self, tenant: &str, limit: u32) -> Option<Arc<Semaphore>> {
        let same = self.config.tenants.get(tenant)?.limits.concurrency == Some(limit);
        self.tenants.get(tenant).filter(|_| same).cloned()
    }

    fn find(&self, name: &str) -> Option<&pumphouse_config::Subscription> {
        self.config.subscriptions.iter().find(|one| one.name == name)
    }
}

/// Opens a subscription's places, once.
pub(crate) async fn attempt(
    config: &Config,
    subscription: &pumphouse_config::Subscription,
    transports: &Transports,
) -> Result<Wired, WireError> {
    let wired = transports.wire(config, subscription);
    tokio::time::timeout(OPEN_TIMEOUT, wired).await.unwrap_or_else(|_| {
        Err(WireError { away: true, text: "its broker did not answer in time".to_owned() })
    })
}

/// A subscription that is to be opened.
#[derive(Clone)]
pub(crate) struct Opening {
    name: String,
    common: Common,
    in_force: InForce,
}

impl Opening {
    pub(crate) fn new(name: &str, common: &Common, in_force: &InForce) -> Self {
        Self { name: name.to_owned(), common: common.clone(), in_force: in_force.clone() }
    }

    /// A slot for it. Where the broker is away, a task goes on trying until the slot is stopped.
    pub(crate) fn slot(self, first: Result<Wired, WireError>) -> Arc<Slot> {
        let handler = self.in_force.find(&self.name).map(|one| one.handler.clone());
        let slot = Arc::new(Slot::new(&self.name, &handler.unwrap_or_default()));
        match first {
            Ok(wired) => self.start(&slot, wired),
            Err(error) => {
                self.report(&slot, &error);
                tokio::spawn(self.keep_trying(slot.clone()));
            }
        }
        slot
    }

    async fn keep_trying(self, slot: Arc<Slot>) {
        let mut failures = 0;
        loop {
            let roll = Roll::new(0.5 + rand::random::<f64>() / 2.0);
            tokio::select! {
                () = slot.stopping.cancelled() => return,
                () = tokio::time::sleep(OPEN_BACKOFF.after(Count(failures), roll)) => {}
            }
            let Some(subscription) = self.in_force.find(&self.name) else { return };
            let InForce { config, transports, .. } = &self.in_force;
            match attempt(config, subscription, transports).await {
                Ok(wired) => return self.start(&slot, wired),
                Err(error) => self.report(&slot, &error),
            }
            failures = failures.saturating_add(1);
        }
    }

    fn report(&self, slot: &Slot, error: &WireError) {
        if slot.waits(error.text.clone()) {
            tracing::warn!(
                subscription = self.name,
                problem = error.text,
                "subscription can't be opened; trying again with backoff"
            );
        }
    }

    /// Under `create`, what vanished while the host ran is made again: an emulator that was started anew has nothing.
    async fn keep_furnished(self, slot: Arc<Slot>) {
        let mut failures = 0;
        loop {
            let roll = Roll::new(0.5 + rand::random::<f64>() / 2.0);
            tokio::select! {
                () = slot.stopping.cancelled() => return,
                () = tokio::time::sleep(FURNISH_BACKOFF.after(Count(failures), roll)) => {}
            }
            if !slot.misses_source() {
                failures = 0;
                continue;
            }
            failures = failures.saturating_add(1);
            self.furnish().await;
        }
    }

    async fn furnish(&self) {
        let Some(subscription) = self.in_force.find(&self.name) else { return };
        let InForce { config, transports, .. } = &self.in_force;
        match attempt(config, subscription, transports).await {
            // The pump has a source already, and finds that it is there again.
            Ok(_) => tracing::warn!(
                subscription = self.name,
                "the source was gone and is made again; what it held is lost"
            ),
            Err(error) => tracing::debug!(
                subscription = self.name,
                problem = error.text,
                "the source is gone and can't be made again; trying again with backoff"
            ),
        }
    }

    fn start(&self, slot: &Arc<Slot>, wired: Wired) {
        self.say_unenforceable(&wired);
        let Some(subscription) = self.subscription(wired) else { return };
        let (metrics, stop) = (self.common.metrics.clone(), slot.stopping.clone());
        tokio::spawn(depths::watch(self.name.clone(), subscription.sinks.clone(), metrics, stop));
        slot.pump(subscription.source.clone(), || Pump::start(subscription));
        let creates = self.in_force.find(&self.name).map(|one| one.provision);
        if creates == Some(Provision::Create) {
            tokio::spawn(self.clone().keep_furnished(slot.clone()));
        }
    }

    /// F-3: the same text as the finding, with what the broker said, once for each subscription and process.
    fn say_unenforceable(&self, wired: &Wired) {
        let facts = self.in_force.config.facts();
        let one = facts.iter().find(|facts| facts.name == self.name);
        let one = one.map(|one| with_broker_facts(one, wired));
        let Some(text) = one.and_then(|one| budget_unenforceable(&one, &facts)) else { return };
        let mut said = self.common.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(self.name.clone()) {
            tracing::warn!(subscription = self.name, rule = "F-3", finding = text, "finding");
        }
    }

    fn subscription(&self, wired: Wired) -> Option<Subscription> {
        let one = self.in_force.find(&self.name)?;
        let handler = self.in_force.handlers.get(&one.handler)?;
        let system = wired.opened.source.capabilities().system;
        let source = one.source.spelled();
        let observer = self.common.metrics.subscription(pumphouse_telemetry::Subscription {
            name: &one.name,
            tenant: &one.tenant,
            handler: &one.handler,
            system,
            source,
        });
        Some(Subscription {
            name: one.name.as_str().into(),
            source_name: source.into(),
            settings: self.settings(one, &wired)?,
            source: wired.opened.source,
            handler: handler.clone() as Arc<dyn Handler>,
            sinks: wired.sinks,
            deduplicate: self.deduplicate(one),
            tenant: self.in_force.tenants.get(&one.tenant).cloned(),
            pace: self.in_force.paces.get(&one.tenant).cloned(),
            observer,
            clock: self.common.clock.clone(),
        })
    }

    fn settings(&self, one: &pumphouse_config::Subscription, wired: &Wired) -> Option<Settings> {
        let linger = wired.opened.source.capabilities().settle_linger;
        Some(Settings {
            dispatch: match one.dispatch {
                Dispatch::Sequential => pumphouse_pump::Dispatch::Sequential,
                Dispatch::Concurrent => {
                    pumphouse_pump::Dispatch::Concurrent(one.concurrency as usize)
                }
            },
            policy: one.policy.clone(),
            honours_copies: one.reads_copies,
            lease: self.in_force.config.lease_of(one, linger)?,
            // A drain waits for an open poll, and must have time left for what the poll brings.
            receive_wait: RECEIVE_WAIT.min(self.common.grace / 2),
            receive_margin: RECEIVE_MARGIN,
        })
    }

    fn deduplicate(&self, one: &pumphouse_config::Subscription) -> Option<Deduplicate> {
        let settings = one.deduplicate.as_ref()?;
        Some(Deduplicate {
            state: self.common.state.clone(),
            scope: format!("{}/{}/{}", one.tenant, one.name, one.handler).into(),
            key: match &settings.key {
                DeduplicationKey::Id => KeySource::Id,
                DeduplicationKey::Header(name) => KeySource::Header(name.clone()),
            },
            ttl: settings.ttl,
        })
    }
}

/// What the findings say of a subscription once its broker was asked (F-2, F-3, F-7). Whether the count advances is
/// the source's word, not the configuration's: a policy may have been found, or be missing.
pub(crate) fn with_broker_facts(facts: &SubscriptionFacts, wired: &Wired) -> SubscriptionFacts {
    let OpenSource { source, native_limit, advisory_limit, retention } = &wired.opened;
    let counts = source.capabilities().count_advances;
    SubscriptionFacts {
        native_limit: native_limit.or(facts.native_limit).filter(|_| counts),
        count_stands_still: (!counts).then(|| UNCOUNTED.to_owned()),
        advisory_limit: advisory_limit.or(facts.advisory_limit),
        retention: retention.or(facts.retention),
        ..facts.clone()
    }
}

#[cfg(test)]
#[cfg(feature = "pubsub")]
mod tests {
    use super::*;
    use crate::host::transports::build;
    use pumphouse_contract::{Rule, review};
    use pumphouse_pump::SystemClock;

    const NATIVE: &str =
        "native = { max_delivery_attempts = 5, dead_letter.topic = \"orders-native\" }";

    /// Under `assume` nobody is asked, so the endpoint need not be there.
    fn config(native: &str) -> Config {
        let text = format!(
            "[pubsub]\nproject = \"demo\"\nendpoint = \"http://127.0.0.1:9\"\nprovision = \"assume\"\n[tenants.acme.handlers.orders]\ncomponent = \"orders.wasm\"\n[subscriptions.orders]\nsource.pubsub.subscription = \"orders-work\"\nhandler = \"acme/orders\"\nmax_deliveries = 3\ndead_letter.pubsub.topic = \"orders-dead\"\n{native}\n"
        );
        let loaded = pumphouse_config::parse(&text, std::path::Path::new("p.toml"), &build());
        loaded.expect("a sound configuration").config
    }

    async fn wired(config: &Config) -> Wired {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let transports = Transports::open(config, &clock).await.expect("a client");
        let subscription = config.subscriptions.first().expect("one");
        attempt(config, subscription, &transports).await.expect("nothing was asked")
    }

    /// F-3: with and without a policy, the source's word over the configuration's.
    #[tokio::test]
    async fn f_3_the_source_says_whether_deliveries_are_counted() {
        let (with, without) = (config(NATIVE), config(""));
        for (written, found, rules) in [
            (&with, &with, vec![]),
            (&without, &without, vec![Rule::F3]),
            (&without, &with, vec![]),
            (&with, &without, vec![Rule::F3]),
        ] {
            let facts = written.facts();
            let known = with_broker_facts(facts.first().expect("one"), &wired(found).await);
            let said: Vec<Rule> =
                review(std::slice::from_ref(&known)).iter().map(|one| one.rule).collect();
            assert_eq!(said, rules);
            assert_eq!(
                known.native_limit.is_some(),
                written.subscriptions[0].native.is_some() && rules.is_empty()
            );
        }
    }

    /// A pull's lease is its subscription's own, so the source must know it when it is made.
    #[test]
    fn the_lease_is_that_of_the_handler_and_its_destinations() {
        let config = config(NATIVE);
        let lease = config.lease_of(&config.subscriptions[0], Duration::from_millis(5));
        assert_eq!(lease.map(|lease| lease.length()), Some(Duration::from_millis(58_005)));
    }
}
