//! The metrics of a host.

mod calls;
mod families;
mod histogram;
mod observer;
mod requests;
mod sampled;
mod series;

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use pumphouse_contract::Destination;
use pumphouse_contract::ports::{Depth, HandlerStatus, Observer, SubscriptionStatus};

use families::Families;
use observer::Recorder;
use sampled::Sampled;

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
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics in which nothing was seen yet.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let families = Families::registered_in(&mut registry);
        let sampled = Arc::new(Sampled::default());
        registry.register_collector(Box::new(Arc::clone(&sampled)));
        Self(Arc::new(Inner { registry, families, sampled }))
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
