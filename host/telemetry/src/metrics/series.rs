//! Series that are looked up once and then recorded by handles.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use super::families::{Counters, Histograms, Labels};
use super::histogram::Histogram;
use crate::names::labels;

/// A histogram that few subscriptions ever need.
type Rare = LazyLock<Histogram, Box<dyn FnOnce() -> Histogram + Send>>;

/// One value for each word of a short list.
pub(crate) struct Each<K, V>(Vec<(K, V)>);

impl<K: PartialEq + Copy, V> Each<K, V> {
    pub(crate) fn of(keys: impl IntoIterator<Item = K>, value: impl Fn(K) -> V) -> Self {
        Self(keys.into_iter().map(|key| (key, value(key))).collect())
    }

    fn get(&self, key: K) -> Option<&V> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }
}

impl<K: PartialEq + Copy> Each<K, Counter> {
    /// A word that is in no list is in no counter either.
    pub(crate) fn count(&self, key: K) {
        if let Some(counter) = self.get(key) {
            counter.inc();
        }
    }
}

/// How long one kind of operation takes, apart for those that failed.
pub(crate) struct Timed<K> {
    well: Histogram,
    failed: Each<K, Rare>,
}

impl<K: PartialEq + Copy> Timed<K> {
    pub(crate) fn new(
        family: &Histograms,
        base: &Labels,
        kinds: impl IntoIterator<Item = K>,
        label: impl Fn(K) -> &'static str,
    ) -> Self {
        let failed = |kind| rare(family.clone(), with(base, [(labels::ERROR, label(kind))]));
        Self { well: family.of(base), failed: Each::of(kinds, failed) }
    }

    pub(crate) fn record(&self, failure: Option<K>, took: Duration) {
        let histogram = match failure {
            None => Some(&self.well),
            Some(kind) => self.failed.get(kind).map(|rare| &**rare),
        };
        if let Some(histogram) = histogram {
            histogram.observe_duration(took);
        }
    }
}

fn rare(family: Histograms, labels: Labels) -> Rare {
    let make: Box<dyn FnOnce() -> Histogram + Send> = Box::new(move || family.of(&labels));
    LazyLock::new(make)
}

/// The labels, and more.
pub(crate) fn with<'a>(
    base: &Labels,
    more: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> Labels {
    let more = more.into_iter().map(|(label, value)| (label, value.to_owned()));
    base.iter().cloned().chain(more).collect()
}

/// The counter of these labels, and more.
pub(crate) fn counter<'a>(
    family: &Counters,
    base: &Labels,
    more: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> Counter {
    family.get_or_create_owned(&with(base, more))
}
