//! What a pump says of a message: constant texts with fields, never a body.

use std::sync::atomic::Ordering as Memory;
use std::time::Duration;

use pumphouse_contract::ports::{Action, Event, Failure, StateError, Version};
use pumphouse_contract::trace::{TRACEPARENT, TraceContext};
use pumphouse_contract::{Delivery, Fault};

use crate::pump::Inner;

impl Inner {
    pub(crate) fn span(&self, delivery: &Delivery) -> tracing::Span {
        let span = tracing::info_span!(
            "process",
            subscription = self.name(),
            message_id = delivery.message.id,
            attempt = delivery.counted.count().deliveries(),
            trace_id = tracing::field::Empty,
            parent_id = tracing::field::Empty,
        );
        if !span.is_disabled()
            && let Some(parent) =
                delivery.message.headers.text(TRACEPARENT).and_then(TraceContext::parse)
        {
            span.record("trace_id", tracing::field::display(parent.trace()));
            span.record("parent_id", tracing::field::display(parent.parent()));
        }
        span
    }

    pub(crate) fn note_shortened(&self, shortened: bool, after: Duration) {
        if !shortened {
            return;
        }
        self.subscription.observer.record(Event::DelayShortened);
        if !self.said_shortened.swap(true, Memory::Relaxed) {
            tracing::warn!(
                subscription = self.name(),
                given_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                "a handler asked for a longer delay than the broker gives; it is shortened"
            );
        }
    }

    pub(crate) fn log_fault(&self, fault: &Fault, delivery: &Delivery, version: &dyn Version) {
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
