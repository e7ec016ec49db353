//! What a pump says of a message: constant texts with fields, never a body.

use std::sync::atomic::Ordering as Memory;
use std::time::Duration;

use pumphouse_contract::ports::{Action, Event, Failure, StateError, Version};
use pumphouse_contract::trace::TraceContext;
use pumphouse_contract::{Delivery, Fault};

use crate::pump::Inner;

impl Inner {
    /// What every line about a delivery says. It is made where something is said, which for most messages is nowhere:
    /// a span for each took a quarter of the processor time of a pump. It is there at every level of the log.
    pub(crate) fn span(&self, delivery: &Delivery) -> tracing::Span {
        let trace = TraceContext::of(&delivery.message.headers);
        tracing::error_span!(
            "process",
            subscription = self.name(),
            message_id = delivery.message.id,
            attempt = delivery.counted.count().deliveries(),
            trace_id = trace.map(|trace| display(trace.trace())),
            parent_id = trace.map(|trace| display(trace.parent())),
        )
    }

    pub(crate) fn note_shortened(&self, shortened: bool, after: Duration, delivery: &Delivery) {
        if !shortened {
            return;
        }
        self.subscription.observer.record(Event::DelayShortened);
        if !self.said_shortened.swap(true, Memory::Relaxed) {
            let _about = self.span(delivery).entered();
            tracing::warn!(
                subscription = self.name(),
                given_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                "a handler asked for a longer delay than the broker gives; it is shortened"
            );
        }
    }

    pub(crate) fn log_fault(&self, fault: &Fault, delivery: &Delivery, version: &dyn Version) {
        let _about = self.span(delivery).entered();
        tracing::warn!(
            subscription = self.name(),
            message_id = delivery.message.id,
            handler = version.name(),
            version = version.digest().get(..12).unwrap_or_default(),
            fault = fault.kind.label(),
            detail = fault.detail,
            backtrace = fault.backtrace.join(" < "),
            last_logs = fault.last_logs.join(" | "),
            "handler gave no answer"
        );
    }

    pub(crate) fn log_state(&self, error: &StateError, delivery: &Delivery) {
        let _about = self.span(delivery).entered();
        tracing::error!(
            subscription = self.name(),
            message_id = delivery.message.id,
            error = %error,
            "deduplication failed; the message is not acknowledged"
        );
    }

    pub(crate) fn log_unsettled(
        &self,
        delivery: &Delivery,
        action: Action,
        failure: Failure,
        text: &str,
    ) {
        let action = match action {
            Action::Ack => "ack",
            Action::Release(_) => "release",
        };
        let _about = self.span(delivery).entered();
        tracing::error!(
            subscription = self.name(),
            message_id = delivery.message.id,
            action,
            failure = ?failure,
            error = text,
            "settlement failed; the message may be handled again"
        );
    }
}
