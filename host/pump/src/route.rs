//! A rejection: the copy is published and confirmed, only then is the original removed (C-9 to C-13).

use std::sync::Arc;

use pumphouse_contract::ports::{Event, PublishError, Sink};
use pumphouse_contract::{
    Count, Destination, Message, Outgoing, Provenance, Reason, Why, rejected_copy,
};
use tokio::time::timeout;

use crate::settings::Subscription;

/// What became of a rejected message's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routed {
    /// The original may be removed: the copy is confirmed, or nobody wants one.
    Remove,
    /// The copy is not known to be there.
    Keep,
}

/// One rejection.
pub(crate) struct Rejecting<'a> {
    pub(crate) message: &'a Message,
    pub(crate) count: Count,
    pub(crate) reason: Reason,
    pub(crate) why: &'a Why,
    /// `binding@version`.
    pub(crate) by: &'a str,
}

impl Rejecting<'_> {
    pub(crate) async fn route(&self, subscription: &Subscription) -> Routed {
        let chosen = subscription.sinks.configured().choose(self.reason);
        let sink = chosen.and_then(|to| subscription.sinks.get(to).map(|sink| (to, sink)));
        match sink {
            None => self.discard(subscription),
            Some((to, sink)) => self.publish(to, sink, subscription).await,
        }
    }

    fn discard(&self, subscription: &Subscription) -> Routed {
        tracing::warn!(
            subscription = &*subscription.name,
            message_id = self.message.id,
            reason = self.reason.label(),
            rejection = %self.why,
            "rejected message has no destination and is removed"
        );
        subscription.observer.record(Event::Discarded { reason: self.reason });
        Routed::Remove
    }

    async fn publish(
        &self,
        to: Destination,
        sink: &Arc<dyn Sink>,
        subscription: &Subscription,
    ) -> Routed {
        let began = subscription.clock.mono();
        let copy = self.copy(subscription);
        let bound = subscription.settings.lease.publish_timeout.unwrap_or_default();
        let confirmed = timeout(bound, sink.publish(copy)).await.unwrap_or_else(|_| {
            Err(PublishError::Unavailable(sink.name().to_owned(), "no confirmation in time".into()))
        });
        match confirmed {
            Ok(_) => {
                let took = subscription.clock.mono().since(began);
                self.routed(to, sink, subscription);
                subscription.observer.record(Event::Routed { to, reason: self.reason, took });
                Routed::Remove
            }
            Err(error) => {
                self.not_routed(&error, subscription);
                subscription.observer.record(Event::RouteFailed { to, reason: self.reason });
                Routed::Keep
            }
        }
    }

    fn copy(&self, subscription: &Subscription) -> Outgoing {
        let rejected_by = format!("{}/{}", subscription.name, self.by);
        let from = Provenance {
            source: &subscription.source_name,
            rejected_by: &rejected_by,
            now: subscription.clock.wall(),
        };
        rejected_copy(self.message, self.count, self.reason, self.why, from)
    }

    fn routed(&self, to: Destination, sink: &Arc<dyn Sink>, subscription: &Subscription) {
        tracing::info!(
            subscription = &*subscription.name,
            message_id = self.message.id,
            reason = self.reason.label(),
            destination = sink.name(),
            kind = to.label(),
            count = self.count.0,
            rejection = %self.why,
            "rejected message routed"
        );
    }

    fn not_routed(&self, error: &PublishError, subscription: &Subscription) {
        tracing::error!(
            subscription = &*subscription.name,
            message_id = self.message.id,
            reason = self.reason.label(),
            error = %error,
            "rejected message could not be routed and stays at its source"
        );
    }
}
