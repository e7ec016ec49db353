//! The parts of a lease that are not configured, each in one place with its unit in its name.

use std::time::Duration;

use pumphouse_contract::LeaseBudget;

use crate::types::{Config, Subscription};

/// How long a received message may wait in the host before its call begins, in seconds.
pub const QUEUE_WAIT_SECS: u64 = 1;
/// The bound of one settlement request, in seconds.
pub const SETTLE_TIMEOUT_SECS: u64 = 5;
/// How often a settlement is tried.
pub const SETTLE_TRIES: u32 = 3;
/// The bound of publishing one rejected copy, in seconds.
pub const PUBLISH_TIMEOUT_SECS: u64 = 10;
/// What is added for clocks that differ and requests that travel, in seconds.
pub const SKEW_SECS: u64 = 2;

/// The lease of a subscription: `deadline` is its handler's, `linger` how long its transport waits to fill a
/// settlement batch, `routes` whether it has a rejection destination.
#[must_use]
pub fn lease_budget(deadline: Duration, linger: Duration, routes: bool) -> LeaseBudget {
    LeaseBudget {
        queue_wait: Duration::from_secs(QUEUE_WAIT_SECS),
        deadline,
        linger,
        settle_timeout: Duration::from_secs(SETTLE_TIMEOUT_SECS),
        settle_tries: SETTLE_TRIES,
        publish_timeout: routes.then_some(Duration::from_secs(PUBLISH_TIMEOUT_SECS)),
        skew: Duration::from_secs(SKEW_SECS),
    }
}

impl Config {
    /// The lease of a subscription of this configuration, `linger` being how long its transport waits to fill a
    /// settlement batch; none where its handler is unknown.
    #[must_use]
    pub fn lease_of(&self, one: &Subscription, linger: Duration) -> Option<LeaseBudget> {
        let deadline = self.handlers.get(&one.handler)?.limits.deadline;
        let routes = one.dead_letter.is_some() || one.invalid_message.is_some();
        Some(lease_budget(deadline, linger, routes))
    }
}
