//! The metrics of a host.

mod accounts;
mod calls;
mod families;
mod histogram;
mod observer;
mod requests;
mod sampled;
mod series;
mod spent;

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use pumphouse_contract::Destination;
use pumphouse_contract::ports::{Depth, HandlerStatus, Observer, SubscriptionStatus, TenantStatus};

use accounts::Accounts;
use families::Families;
use observer::Recorder;
use sampled::Sampled;
use spent::Spent;

pub use accounts::OTHER;

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What names a subscription in the labels of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Its name.
    pub name: &'a str,
    /// The tenant of its handler.
    pub tenant: &'a str,
    /// Its handler: `tenant/name`.
    pub handler: &'a str,
    /// The `messaging.system` of its source.
    pub system: &'a str,
    /// Its source as configured.
    pub source: &'a str,
}

/// Every metric of one host. Clones are handles of the same.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    families: Families,
    sampled: Arc<Sampled>,
    accounts: Arc<Accounts>,
}

/// How many handlers have series of their own, where nothing else is said.
const DEFAULT_HANDLERS: usize = 1_000;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics in which nothing was seen yet, with series of their own for at most a thousand handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_handlers(DEFAULT_HANDLERS)
    }

    /// Metrics in which nothing was seen yet. At most so many handlers, and as many tenants, have series of their own
    /// in what is counted by [`Metrics::accounts`]; the others are summed as [`OTHER`].
    #[must_use]
    pub fn with_handlers(most: usize) -> Self {
        let mut registry = Registry::default();
        let families = Families::registered_in(&mut registry);
        let accounts = Arc::new(Accounts::new(most));
        let sampled = Arc::new(Sampled::new(most, Arc::clone(&accounts)));
        registry.register_collector(Box::new(Arc::clone(&sampled)));
        registry.register_collector(Box::new(Spent(Arc::clone(&accounts))));
        Self(Arc::new(Inner { registry, families, sampled, accounts }))
    }

    /// What records a subscription's events: a few atomic additions each, without a lock or an allocation. (The
    /// first failure of its kind makes its histogram, and that takes both.)
    ///
    /// Its counters exist from now on at 0, so that an alert sees the first event. The same labels give the same
    /// counters, also after a reload.
    #[must_use]
    pub fn subscription(&self, subscription: Subscription<'_>) -> Arc<dyn Observer> {
        Arc::new(Recorder::new(&self.0.families, subscription))
    }

    /// Replaces what is sampled rather than counted: deliveries in progress, readiness, versions of handlers,
    /// whether the configuration on disk is refused. What is no longer listed is no longer shown. To be called
    /// before each [`encode`](Self::encode).
    pub fn refresh(
        &self,
        subscriptions: &[SubscriptionStatus],
        handlers: &[HandlerStatus],
        configuration_rejected: bool,
    ) {
        self.0.sampled.refresh(subscriptions, handlers, configuration_rejected);
    }

    /// Takes note of what tenants and handlers have used so far. To be called before each
    /// [`encode`](Self::encode), and before [`refresh`](Self::refresh).
    pub fn accounts(&self, tenants: &[TenantStatus]) {
        self.0.accounts.look(tenants);
    }

    /// Notes how full a rejection destination is. What is not known is not shown; a
    /// [`refresh`](Self::refresh) without the subscription forgets it.
    pub fn depth(&self, subscription: &str, destination: Destination, depth: Depth) {
        self.0.sampled.depth(subscription, destination, depth);
    }

    /// Notes how many messages a subscription's source holds ahead of the handlers; a
    /// [`refresh`](Self::refresh) without the subscription forgets it.
    pub fn held(&self, subscription: &str, messages: usize) {
        self.0.sampled.held(subscription, messages);
    }

    /// Notes how many messages a subscription's source has got again, so far, while they were handled; a
    /// [`refresh`](Self::refresh) without the subscription forgets it.
    pub fn delivered_again(&self, subscription: &str, messages: u64) {
        self.0.sampled.delivered_again(subscription, messages);
    }

    /// Every metric as OpenMetrics text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if let Err(error) = text::encode(&mut text, &self.0.registry) {
            tracing::error!(%error, "metrics could not be encoded");
        }
        text
    }
}
