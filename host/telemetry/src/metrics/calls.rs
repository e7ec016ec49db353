//! What became of deliveries, and what their calls needed.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use pumphouse_contract::{Count, Decision, FaultKind, Reason, Usage};

use super::families::{Families, Labels};
use super::histogram::Histogram;
use super::observer::REASONS;
use super::series::{Each, Timed, counter};
use crate::names::labels;

/// What became of deliveries.
pub(crate) struct Deliveries {
    first: Answers,
    redelivered: Answers,
    turned: Each<Reason, Counter>,
    duplicate: Counter,
    dedup_hits: Counter,
    returned: Counter,
    given_back: Counter,
    count: Histogram,
}

/// How a delivery ended that a handler was called for.
struct Answers {
    ack: Counter,
    defer: Counter,
    reject: Each<Reason, Counter>,
}

impl Deliveries {
    pub(crate) fn new(families: &Families, ours: &Labels) -> Self {
        let outcome = |outcome| counter(&families.deliveries, ours, [(labels::OUTCOME, outcome)]);
        let turned = |reason: Reason| {
            let more = [(labels::OUTCOME, "reject"), (labels::REASON, reason.label())];
            counter(&families.deliveries, ours, more)
        };
        Self {
            first: Answers::new(families, ours, "false"),
            redelivered: Answers::new(families, ours, "true"),
            turned: Each::of(REASONS, turned),
            duplicate: outcome("duplicate"),
            dedup_hits: counter(&families.dedup_hits, ours, []),
            returned: outcome("given_back"),
            given_back: counter(&families.given_back, ours, []),
            count: families.delivery_count.of(ours),
        }
    }

    pub(crate) fn handled(&self, decision: &Decision, count: Count) {
        self.count.observe(count.0.into());
        if count.0 == 0 { &self.first } else { &self.redelivered }.count(decision);
    }

    pub(crate) fn turned(&self, reason: Reason) {
        self.turned.count(reason);
    }

    pub(crate) fn duplicate(&self) {
        self.duplicate.inc();
        self.dedup_hits.inc();
    }

    pub(crate) fn given_back(&self) {
        self.returned.inc();
        self.given_back.inc();
    }
}

impl Answers {
    fn new(families: &Families, ours: &Labels, redelivered: &str) -> Self {
        let again = (labels::REDELIVERED, redelivered);
        let plain =
            |outcome| counter(&families.deliveries, ours, [(labels::OUTCOME, outcome), again]);
        let reject = |reason: Reason| {
            let more = [(labels::OUTCOME, "reject"), (labels::REASON, reason.label()), again];
            counter(&families.deliveries, ours, more)
        };
        Self { ack: plain("ack"), defer: plain("defer"), reject: Each::of(REASONS, reject) }
    }

    fn count(&self, decision: &Decision) {
        match decision {
            Decision::Ack => _ = self.ack.inc(),
            Decision::Release { .. } => _ = self.defer.inc(),
            Decision::Route(reason, _) => self.reject.count(*reason),
        }
    }
}

/// How calls went.
pub(crate) struct Calls {
    duration: Timed<FaultKind>,
    faults: Each<FaultKind, Counter>,
    cpu_time: Histogram,
    memory_peak: Histogram,
    instantiation: Histogram,
}

impl Calls {
    pub(crate) fn new(families: &Families, ours: &Labels, process: &Labels) -> Self {
        let fault =
            |kind: FaultKind| counter(&families.faults, ours, [(labels::KIND, kind.label())]);
        let duration = &families.process_duration;
        Self {
            duration: Timed::new(duration, process, FaultKind::ALL, FaultKind::label),
            faults: Each::of(FaultKind::ALL, fault),
            cpu_time: families.guest_cpu_time.of(ours),
            memory_peak: families.guest_memory_peak.of(ours),
            instantiation: families.guest_instantiation.of(ours),
        }
    }

    pub(crate) fn ended(&self, fault: Option<FaultKind>, took: Duration, usage: Usage) {
        self.duration.record(fault, took);
        if let Some(kind) = fault {
            self.faults.count(kind);
        }
        // A handler that is not measured says nothing, rather than that it needed nothing.
        if usage != Usage::default() {
            self.cpu_time.observe_duration(usage.cpu);
            self.memory_peak.observe(usage.memory_peak);
            self.instantiation.observe_duration(usage.instantiation);
        }
    }
}
