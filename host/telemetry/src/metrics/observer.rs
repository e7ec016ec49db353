//! Records what one pump saw. Every series is looked up once, when the recorder is made.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use pumphouse_contract::ports::{Event, Failure, Observer};
use pumphouse_contract::{Count, Decision, Destination, FaultKind, Reason, Usage};

use super::Subscription;
use super::families::{Counters, Families, Histograms, Labels};
use super::histogram::Histogram;
use crate::names::labels;

/// A histogram that few subscriptions ever need.
type Rare = LazyLock<Histogram, Box<dyn FnOnce() -> Histogram + Send>>;

const REASONS: [Reason; 3] = [Reason::Unacceptable, Reason::DeliveryError, Reason::None];
const DESTINATIONS: [Destination; 2] = [Destination::DeadLetter, Destination::InvalidMessage];
const FAILURES: [Failure; 3] = [Failure::Retry, Failure::Gone, Failure::Refused];
const ACTIONS: [&str; 2] = ["ack", "release"];
const RECEIVE_ERRORS: [&str; 5] = ["unavailable", "missing", "denied", "counter-missing", OTHER];

/// Stands for a word that is in none of the lists.
const OTHER: &str = "other";

/// One value for each word of a short list.
struct Each<K, V>(Vec<(K, V)>);

impl<K: PartialEq + Copy, V> Each<K, V> {
    fn of(keys: impl IntoIterator<Item = K>, value: impl Fn(K) -> V) -> Self {
        Self(keys.into_iter().map(|key| (key, value(key))).collect())
    }

    fn with(&self, key: K, record: impl FnOnce(&V)) {
        if let Some((_, value)) = self.0.iter().find(|(k, _)| *k == key) {
            record(value);
        }
    }
}

/// How a delivery ended that a handler was called for.
struct Answers {
    ack: Counter,
    defer: Counter,
    reject: Each<Reason, Counter>,
}

impl Answers {
    fn count(&self, decision: &Decision) {
        match decision {
            Decision::Ack => _ = self.ack.inc(),
            Decision::Release { .. } => _ = self.defer.inc(),
            Decision::Route(reason, _) => self.reject.with(*reason, |c| _ = c.inc()),
        }
    }
}

/// How long one kind of operation takes, apart for those that failed.
struct Timed<K> {
    well: Histogram,
    failed: Each<K, Rare>,
}

impl<K: PartialEq + Copy> Timed<K> {
    fn record(&self, failure: Option<K>, took: Duration) {
        match failure {
            None => self.well.observe_duration(took),
            Some(kind) => self.failed.with(kind, |h| h.observe_duration(took)),
        }
    }
}

/// The series of one subscription.
pub(crate) struct Recorder {
    process: Timed<FaultKind>,
    receive: Timed<&'static str>,
    settle: Timed<Failure>,
    send: Histogram,
    consumed: Counter,
    sent: Counter,
    first: Answers,
    redelivered: Answers,
    turned: Each<Reason, Counter>,
    duplicate: Counter,
    returned: Counter,
    delivery_count: Histogram,
    faults: Each<FaultKind, Counter>,
    lease_lost: Counter,
    dedup_hits: Counter,
    given_back: Counter,
    delays_shortened: Counter,
    discarded: Each<Reason, Counter>,
    receive_errors: Each<&'static str, Counter>,
    receive_stalls: Counter,
    settle_failures: Each<(&'static str, Failure), Counter>,
    routed: Each<(Destination, Reason), Counter>,
    route_failures: Each<(Destination, Reason), Counter>,
    cpu_time: Histogram,
    memory_peak: Histogram,
    instantiation: Histogram,
}

impl Recorder {
    pub(crate) fn new(families: &Families, subscription: Subscription<'_>) -> Self {
        let f = families;
        let ours = ours(subscription);
        let broker = |operation| broker(subscription, operation);
        let one = |family: &Counters| family.get_or_create_owned(&ours);
        let by_reason = |family: &Counters| {
            Each::of(REASONS, |reason| {
                family.get_or_create_owned(&with(&ours, [(labels::REASON, reason.label())]))
            })
        };
        let routes = |family: &Counters| {
            Each::of(every_route(), |route| route_counter(family, &ours, route))
        };
        let outcome = |labels: &[(&'static str, &str)]| {
            f.deliveries.get_or_create_owned(&with(&ours, labels.iter().copied()))
        };
        Self {
            process: Timed {
                well: f.process_duration.of(&broker("process")),
                failed: rare(
                    &f.process_duration,
                    &broker("process"),
                    FaultKind::ALL,
                    FaultKind::label,
                ),
            },
            receive: Timed {
                well: f.operation_duration.of(&broker("receive")),
                failed: rare(&f.operation_duration, &broker("receive"), RECEIVE_ERRORS, |kind| {
                    kind
                }),
            },
            settle: Timed {
                well: f.operation_duration.of(&broker("settle")),
                failed: rare(&f.operation_duration, &broker("settle"), FAILURES, failure_label),
            },
            send: f.operation_duration.of(&broker("send")),
            consumed: f.consumed_messages.get_or_create_owned(&broker("receive")),
            sent: f.sent_messages.get_or_create_owned(&broker("send")),
            first: answers(f, &ours, "false"),
            redelivered: answers(f, &ours, "true"),
            turned: Each::of(REASONS, |reason| {
                outcome(&[(labels::OUTCOME, "reject"), (labels::REASON, reason.label())])
            }),
            duplicate: outcome(&[(labels::OUTCOME, "duplicate")]),
            returned: outcome(&[(labels::OUTCOME, "given_back")]),
            delivery_count: f.delivery_count.of(&ours),
            faults: Each::of(FaultKind::ALL, |kind| {
                f.faults.get_or_create_owned(&with(&ours, [(labels::KIND, kind.label())]))
            }),
            lease_lost: one(&f.lease_lost),
            dedup_hits: one(&f.dedup_hits),
            given_back: one(&f.given_back),
            delays_shortened: one(&f.delays_shortened),
            discarded: by_reason(&f.discarded),
            receive_errors: Each::of(RECEIVE_ERRORS, |kind| {
                f.receive_errors.get_or_create_owned(&with(&ours, [(labels::KIND, kind)]))
            }),
            receive_stalls: one(&f.receive_stalls),
            settle_failures: settle_failures(f, &ours),
            routed: routes(&f.dead_letter_messages),
            route_failures: routes(&f.dead_letter_publish_failures),
            cpu_time: f.guest_cpu_time.of(&ours),
            memory_peak: f.guest_memory_peak.of(&ours),
            instantiation: f.guest_instantiation.of(&ours),
        }
    }

    fn received(&self, messages: usize, took: Duration) {
        self.receive.record(None, took);
        self.consumed.inc_by(u64::try_from(messages).unwrap_or(u64::MAX));
    }

    fn receive_failed(&self, kind: &'static str, took: Duration) {
        let kind = RECEIVE_ERRORS.into_iter().find(|known| *known == kind).unwrap_or(OTHER);
        self.receive.record(Some(kind), took);
        self.receive_errors.with(kind, |c| _ = c.inc());
    }

    fn handled(&self, decision: &Decision, fault: Option<FaultKind>, count: Count, took: Duration) {
        self.process.record(fault, took);
        self.delivery_count.observe(count.0.into());
        if let Some(kind) = fault {
            self.faults.with(kind, |c| _ = c.inc());
        }
        if count.0 == 0 { &self.first } else { &self.redelivered }.count(decision);
    }

    fn used(&self, usage: Usage) {
        // A handler that is not measured says nothing, rather than that it needed nothing.
        if usage != Usage::default() {
            self.cpu_time.observe_duration(usage.cpu);
            self.memory_peak.observe(usage.memory_peak);
            self.instantiation.observe_duration(usage.instantiation);
        }
    }

    fn routed(&self, to: Destination, reason: Reason, took: Duration) {
        self.send.observe_duration(took);
        self.sent.inc();
        self.routed.with((to, reason), |c| _ = c.inc());
    }

    fn settled(&self, action: &'static str, failure: Option<Failure>, took: Duration) {
        self.settle.record(failure, took);
        if let Some(failure) = failure {
            self.settle_failures.with((action, failure), |c| _ = c.inc());
        }
        if failure == Some(Failure::Gone) {
            self.lease_lost.inc();
        }
    }
}

impl Observer for Recorder {
    fn record(&self, event: Event<'_>) {
        match event {
            Event::Received { messages, took } => self.received(messages, took),
            Event::ReceiveFailed { kind, took } => self.receive_failed(kind, took),
            Event::ReceiveStalled => _ = self.receive_stalls.inc(),
            Event::Handled { decision, fault, count, took, usage } => {
                self.handled(decision, fault, count, took);
                self.used(usage);
            }
            Event::Turned { reason } => self.turned.with(reason, |c| _ = c.inc()),
            Event::Duplicate => {
                self.duplicate.inc();
                self.dedup_hits.inc();
            }
            Event::GivenBack => {
                self.returned.inc();
                self.given_back.inc();
            }
            Event::DelayShortened => _ = self.delays_shortened.inc(),
            Event::Routed { to, reason, took } => self.routed(to, reason, took),
            Event::RouteFailed { to, reason } => {
                self.route_failures.with((to, reason), |c| _ = c.inc());
            }
            Event::Discarded { reason } => self.discarded.with(reason, |c| _ = c.inc()),
            Event::Settled { action, failure, took } => self.settled(action, failure, took),
            Event::Began | Event::CopyRead => {}
        }
    }
}

fn ours(Subscription { name, tenant, handler, .. }: Subscription<'_>) -> Labels {
    with(
        &Labels::new(),
        [(labels::SUBSCRIPTION, name), (labels::TENANT, tenant), (labels::HANDLER, handler)],
    )
}

fn broker(subscription: Subscription<'_>, operation: &str) -> Labels {
    with(
        &ours(subscription),
        [
            (labels::SYSTEM, subscription.system),
            (labels::SOURCE, subscription.source),
            (labels::OPERATION, operation),
        ],
    )
}

fn with<'a>(base: &Labels, more: impl IntoIterator<Item = (&'static str, &'a str)>) -> Labels {
    let more = more.into_iter().map(|(label, value)| (label, value.to_owned()));
    base.iter().cloned().chain(more).collect()
}

fn rare<K: PartialEq + Copy>(
    family: &Histograms,
    base: &Labels,
    kinds: impl IntoIterator<Item = K>,
    label: impl Fn(K) -> &'static str,
) -> Each<K, Rare> {
    Each::of(kinds, |kind| {
        let family = family.clone();
        let labels = with(base, [(labels::ERROR, label(kind))]);
        let make: Box<dyn FnOnce() -> Histogram + Send> = Box::new(move || family.of(&labels));
        LazyLock::new(make)
    })
}

fn answers(families: &Families, base: &Labels, redelivered: &str) -> Answers {
    let counter = |outcome, reason| {
        let more = [
            (labels::OUTCOME, outcome),
            (labels::REASON, reason),
            (labels::REDELIVERED, redelivered),
        ];
        let said = more.into_iter().filter(|(_, value)| !value.is_empty());
        families.deliveries.get_or_create_owned(&with(base, said))
    };
    Answers {
        ack: counter("ack", ""),
        defer: counter("defer", ""),
        reject: Each::of(REASONS, |reason| counter("reject", reason.label())),
    }
}

fn settle_failures(families: &Families, base: &Labels) -> Each<(&'static str, Failure), Counter> {
    let pairs = ACTIONS.into_iter().flat_map(|action| FAILURES.map(|failure| (action, failure)));
    Each::of(pairs, |(action, failure)| {
        let more = [(labels::ACTION, action), (labels::KIND, failure_label(failure))];
        families.settle_failures.get_or_create_owned(&with(base, more))
    })
}

fn every_route() -> impl Iterator<Item = (Destination, Reason)> {
    DESTINATIONS.into_iter().flat_map(|to| REASONS.map(|reason| (to, reason))).filter(
        // Nothing else ever goes there (C-10).
        |(to, reason)| *to != Destination::InvalidMessage || *reason == Reason::Unacceptable,
    )
}

fn route_counter(family: &Counters, base: &Labels, (to, reason): (Destination, Reason)) -> Counter {
    let more = [(labels::DESTINATION, to.label()), (labels::REASON, reason.label())];
    family.get_or_create_owned(&with(base, more))
}

fn failure_label(failure: Failure) -> &'static str {
    match failure {
        Failure::Retry => "retry",
        Failure::Gone => "gone",
        Failure::Refused => "refused",
    }
}
