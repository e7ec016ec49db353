//! The families behind the names: what is counted and measured, for every subscription.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

use super::histogram::{COUNTS, Histogram, LATENCY, MEMORY, SHORT};
use crate::names::{self, Name};

/// The labels of one series, in the order in which they are shown.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// A family of counters.
pub(crate) type Counters = Family<Labels, Counter>;

/// A family of histograms of one scale.
#[derive(Debug, Clone)]
pub(crate) struct Histograms {
    family: Family<Labels, Histogram, fn() -> Histogram>,
}

impl Histograms {
    pub(crate) fn of(&self, labels: &Labels) -> Histogram {
        self.family.get_or_create_owned(labels)
    }
}

/// Everything that is counted or measured.
#[derive(Debug)]
pub(crate) struct Families {
    pub(crate) process_duration: Histograms,
    pub(crate) operation_duration: Histograms,
    pub(crate) delivery_count: Histograms,
    pub(crate) guest_cpu_time: Histograms,
    pub(crate) guest_memory_peak: Histograms,
    pub(crate) guest_instantiation: Histograms,
    pub(crate) consumed_messages: Counters,
    pub(crate) sent_messages: Counters,
    pub(crate) deliveries: Counters,
    pub(crate) faults: Counters,
    pub(crate) lease_lost: Counters,
    pub(crate) dedup_hits: Counters,
    pub(crate) given_back: Counters,
    pub(crate) delays_shortened: Counters,
    pub(crate) discarded: Counters,
    pub(crate) receive_errors: Counters,
    pub(crate) receive_stalls: Counters,
    pub(crate) settle_failures: Counters,
    pub(crate) dead_letter_messages: Counters,
    pub(crate) dead_letter_publish_failures: Counters,
}

impl Families {
    pub(crate) fn registered_in(registry: &mut Registry) -> Self {
        Self {
            process_duration: histograms(registry, names::PROCESS_DURATION, latency),
            operation_duration: histograms(registry, names::OPERATION_DURATION, latency),
            delivery_count: histograms(registry, names::DELIVERY_COUNT, counts),
            guest_cpu_time: histograms(registry, names::GUEST_CPU_TIME, short),
            guest_memory_peak: histograms(registry, names::GUEST_MEMORY_PEAK, memory),
            guest_instantiation: histograms(registry, names::GUEST_INSTANTIATION, short),
            consumed_messages: counters(registry, names::CONSUMED_MESSAGES),
            sent_messages: counters(registry, names::SENT_MESSAGES),
            deliveries: counters(registry, names::DELIVERIES),
            faults: counters(registry, names::FAULTS),
            lease_lost: counters(registry, names::LEASE_LOST),
            dedup_hits: counters(registry, names::DEDUP_HITS),
            given_back: counters(registry, names::GIVEN_BACK),
            delays_shortened: counters(registry, names::DELAYS_SHORTENED),
            discarded: counters(registry, names::DISCARDED),
            receive_errors: counters(registry, names::RECEIVE_ERRORS),
            receive_stalls: counters(registry, names::RECEIVE_STALLS),
            settle_failures: counters(registry, names::SETTLE_FAILURES),
            dead_letter_messages: counters(registry, names::DEAD_LETTER_MESSAGES),
            dead_letter_publish_failures: counters(registry, names::DEAD_LETTER_PUBLISH_FAILURES),
        }
    }
}

fn latency() -> Histogram {
    Histogram::new(&LATENCY)
}

fn short() -> Histogram {
    Histogram::new(&SHORT)
}

fn memory() -> Histogram {
    Histogram::new(&MEMORY)
}

fn counts() -> Histogram {
    Histogram::new(&COUNTS)
}

fn histograms(registry: &mut Registry, name: Name, make: fn() -> Histogram) -> Histograms {
    let family = Family::new_with_constructor(make);
    register(registry, name, family.clone());
    Histograms { family }
}

fn counters(registry: &mut Registry, name: Name) -> Counters {
    let family = Counters::default();
    register(registry, name, family.clone());
    family
}

fn register(registry: &mut Registry, name: Name, metric: impl Metric) {
    match name.unit() {
        Some(unit) => registry.register_with_unit(name.base(), name.help, unit, metric),
        None => registry.register(name.base(), name.help, metric),
    }
}
