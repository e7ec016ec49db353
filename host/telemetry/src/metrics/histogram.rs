//! A histogram that is recorded without a lock; the library's own takes one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// What a histogram counts, in whole numbers, and how they are shown.
#[derive(Debug)]
pub(crate) struct Scale {
    /// The upper bound of each bucket, inclusive, ascending.
    bounds: &'static [u64],
    /// How many make up one unit as shown.
    per_unit: f64,
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const KIBIBYTE: u64 = 1024;
const MEBIBYTE: u64 = 1024 * KIBIBYTE;

/// Calls and requests: from a handler of microseconds to a long poll.
pub(crate) static LATENCY: Scale = Scale {
    bounds: &[
        100 * MICROSECOND,
        500 * MICROSECOND,
        MILLISECOND,
        5 * MILLISECOND,
        10 * MILLISECOND,
        25 * MILLISECOND,
        50 * MILLISECOND,
        100 * MILLISECOND,
        250 * MILLISECOND,
        500 * MILLISECOND,
        SECOND,
        5 * SECOND,
        10 * SECOND,
        30 * SECOND,
        60 * SECOND,
    ],
    per_unit: 1e9,
};

/// What happens within a call.
pub(crate) static SHORT: Scale = Scale {
    bounds: &[
        10 * MICROSECOND,
        25 * MICROSECOND,
        50 * MICROSECOND,
        100 * MICROSECOND,
        250 * MICROSECOND,
        500 * MICROSECOND,
        MILLISECOND,
        5 * MILLISECOND,
        10 * MILLISECOND,
        50 * MILLISECOND,
        100 * MILLISECOND,
        500 * MILLISECOND,
        SECOND,
        10 * SECOND,
    ],
    per_unit: 1e9,
};

/// Linear memories.
pub(crate) static MEMORY: Scale = Scale {
    bounds: &[
        64 * KIBIBYTE,
        256 * KIBIBYTE,
        MEBIBYTE,
        2 * MEBIBYTE,
        4 * MEBIBYTE,
        16 * MEBIBYTE,
        64 * MEBIBYTE,
        256 * MEBIBYTE,
        1024 * MEBIBYTE,
    ],
    per_unit: 1.0,
};

/// Earlier deliveries.
pub(crate) static COUNTS: Scale =
    Scale { bounds: &[0, 1, 2, 3, 4, 5, 10, 20, 50, 100], per_unit: 1.0 };

/// A handle; clones record to the same histogram.
#[derive(Debug, Clone)]
pub(crate) struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    scale: &'static Scale,
    /// One for each bound, and one for what lies beyond.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(scale: &'static Scale) -> Self {
        let buckets = (0..=scale.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner { scale, buckets, sum: AtomicU64::new(0) }))
    }

    /// Three or four comparisons and two additions.
    pub(crate) fn observe(&self, value: u64) {
        let Inner { scale, buckets, sum } = &*self.0;
        if let Some(bucket) = buckets.get(scale.bounds.partition_point(|bound| *bound < value)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn observe_duration(&self, took: Duration) {
        self.observe(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl Scale {
    #[expect(clippy::cast_precision_loss, reason = "what is shown is a floating-point number")]
    fn shown(&self, value: u64) -> f64 {
        value as f64 / self.per_unit
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Inner { scale, buckets, sum } = &*self.0;
        let bounds = scale.bounds.iter().map(|bound| scale.shown(*bound)).chain([f64::INFINITY]);
        let counts = buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = scale.shown(sum.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn encoded(histogram: &Histogram) -> String {
        let mut registry = Registry::default();
        registry.register("x", "X", histogram.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_value_at_a_bound_belongs_below_it() {
        let histogram = Histogram::new(&COUNTS);
        for count in [0, 0, 1, 6, 100, 101, 4_000_000_000] {
            histogram.observe(count);
        }
        let text = encoded(&histogram);
        for line in [
            "x_sum 4000000208.0",
            "x_count 7",
            r#"x_bucket{le="0.0"} 2"#,
            r#"x_bucket{le="1.0"} 3"#,
            r#"x_bucket{le="5.0"} 3"#,
            r#"x_bucket{le="10.0"} 4"#,
            r#"x_bucket{le="100.0"} 5"#,
            r#"x_bucket{le="+Inf"} 7"#,
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn durations_are_shown_in_seconds() {
        let histogram = Histogram::new(&LATENCY);
        histogram.observe_duration(Duration::from_millis(1500));
        histogram.observe_duration(Duration::MAX);
        let text = encoded(&histogram);
        assert!(text.contains(r#"x_bucket{le="0.001"} 0"#), "{text}");
        assert!(text.contains(r#"x_bucket{le="5.0"} 1"#), "{text}");
        assert!(text.contains(r#"x_bucket{le="+Inf"} 2"#), "{text}");
    }

    #[test]
    fn bounds_ascend() {
        for scale in [&LATENCY, &SHORT, &MEMORY, &COUNTS] {
            assert!(scale.bounds.is_sorted(), "{scale:?}");
        }
    }
}
