//! How requests to the broker went.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use pumphouse_contract::ports::Failure;
use pumphouse_contract::{Destination, Reason};

use super::families::{Counters, Families, Labels};
use super::histogram::Histogram;
use super::observer::REASONS;
use super::series::{Each, Timed, counter};
use crate::names::labels;

const DESTINATIONS: [Destination; 2] = [Destination::DeadLetter, Destination::InvalidMessage];
const FAILURES: [Failure; 3] = [Failure::Retry, Failure::Gone, Failure::Refused];
const ACTIONS: [&str; 2] = ["ack", "release"];
const RECEIVE_ERRORS: [&str; 5] = ["unavailable", "missing", "denied", "counter-missing", OTHER];

/// Stands for a word that is in none of the lists.
const OTHER: &str = "other";

/// Receives.
pub(crate) struct Receives {
    duration: Timed<&'static str>,
    messages: Counter,
    errors: Each<&'static str, Counter>,
    stalls: Counter,
}

impl Receives {
    pub(crate) fn new(families: &Families, ours: &Labels, receive: &Labels) -> Self {
        let error = |kind| counter(&families.receive_errors, ours, [(labels::KIND, kind)]);
        let duration = &families.operation_duration;
        Self {
            duration: Timed::new(duration, receive, RECEIVE_ERRORS, |kind| kind),
            messages: counter(&families.consumed_messages, receive, []),
            errors: Each::of(RECEIVE_ERRORS, error),
            stalls: counter(&families.receive_stalls, ours, []),
        }
    }

    pub(crate) fn answered(&self, messages: usize, took: Duration) {
        self.duration.record(None, took);
        self.messages.inc_by(u64::try_from(messages).unwrap_or(u64::MAX));
    }

    pub(crate) fn failed(&self, kind: &'static str, took: Duration) {
        let kind = RECEIVE_ERRORS.into_iter().find(|known| *known == kind).unwrap_or(OTHER);
        self.duration.record(Some(kind), took);
        self.errors.count(kind);
    }

    pub(crate) fn stalled(&self) {
        self.stalls.inc();
    }
}

/// Settlements.
pub(crate) struct Settlements {
    duration: Timed<Failure>,
    failures: Each<(&'static str, Failure), Counter>,
    lease_lost: Counter,
    delays_shortened: Counter,
}

impl Settlements {
    pub(crate) fn new(families: &Families, ours: &Labels, settle: &Labels) -> Self {
        let pairs = ACTIONS.into_iter().flat_map(|action| FAILURES.map(|kind| (action, kind)));
        let failure = |(action, kind)| {
            let more = [(labels::ACTION, action), (labels::KIND, failure_label(kind))];
            counter(&families.settle_failures, ours, more)
        };
        let duration = &families.operation_duration;
        Self {
            duration: Timed::new(duration, settle, FAILURES, failure_label),
            failures: Each::of(pairs, failure),
            lease_lost: counter(&families.lease_lost, ours, []),
            delays_shortened: counter(&families.delays_shortened, ours, []),
        }
    }

    pub(crate) fn ended(&self, action: &'static str, failure: Option<Failure>, took: Duration) {
        self.duration.record(failure, took);
        if let Some(failure) = failure {
            self.failures.count((action, failure));
        }
        if failure == Some(Failure::Gone) {
            self.lease_lost.inc();
        }
    }

    pub(crate) fn shortened(&self) {
        self.delays_shortened.inc();
    }
}

fn failure_label(failure: Failure) -> &'static str {
    match failure {
        Failure::Retry => "retry",
        Failure::Gone => "gone",
        Failure::Refused => "refused",
    }
}

/// Rejected copies.
pub(crate) struct Copies {
    duration: Histogram,
    sent: Counter,
    routed: Each<(Destination, Reason), Counter>,
    failures: Each<(Destination, Reason), Counter>,
    discarded: Each<Reason, Counter>,
}

impl Copies {
    pub(crate) fn new(families: &Families, ours: &Labels, send: &Labels) -> Self {
        let discarded =
            |reason: Reason| counter(&families.discarded, ours, [(labels::REASON, reason.label())]);
        Self {
            duration: families.operation_duration.of(send),
            sent: counter(&families.sent_messages, send, []),
            routed: routes(&families.dead_letter_messages, ours),
            failures: routes(&families.dead_letter_publish_failures, ours),
            discarded: Each::of(REASONS, discarded),
        }
    }

    pub(crate) fn routed(&self, to: Destination, reason: Reason, took: Duration) {
        self.duration.observe_duration(took);
        self.sent.inc();
        self.routed.count((to, reason));
    }

    pub(crate) fn failed(&self, to: Destination, reason: Reason) {
        self.failures.count((to, reason));
    }

    pub(crate) fn discarded(&self, reason: Reason) {
        self.discarded.count(reason);
    }
}

fn routes(family: &Counters, ours: &Labels) -> Each<(Destination, Reason), Counter> {
    let pairs = DESTINATIONS.into_iter().flat_map(|to| REASONS.map(|reason| (to, reason)));
    // Nothing but an unacceptable message ever goes to the invalid-message destination (C-10).
    let possible = pairs.filter(|(to, reason)| {
        *to != Destination::InvalidMessage || *reason == Reason::Unacceptable
    });
    Each::of(possible, |(to, reason)| {
        let more = [(labels::DESTINATION, to.label()), (labels::REASON, reason.label())];
        counter(family, ours, more)
    })
}
