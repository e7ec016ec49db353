//! Topics, subscriptions and their policies, before they are used.

use std::time::Duration;

use crate::{ProvisionError, Pubsub, SinkSpec, SourceSpec, SubscriptionFacts};

/// What a source needs to know of its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channelled {
    /// Whether deliveries are counted: there is a dead-letter policy (C-8).
    pub(crate) counts: bool,
    /// The lease of a pull.
    pub(crate) ack_deadline: Duration,
    /// Whether a settlement is answered for each message.
    pub(crate) exactly_once: bool,
}

pub(crate) async fn source(_: &Pubsub, spec: &SourceSpec) -> Result<Channelled, ProvisionError> {
    Ok(Channelled::assumed(spec))
}

pub(crate) async fn sink(_: &Pubsub, _: &SinkSpec) -> Result<(), ProvisionError> {
    Ok(())
}

pub(crate) async fn facts(_: &Pubsub, _: &str) -> Result<SubscriptionFacts, ProvisionError> {
    Ok(SubscriptionFacts::default())
}
