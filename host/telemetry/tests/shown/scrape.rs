//! Reads metrics as a scraper does.

use std::time::Duration;

use pumphouse_contract::ports::{
    Condition, Depth, Event, Failure, HandlerStatus, SubscriptionStatus,
};
use pumphouse_contract::{
    Account, Count, Decision, Destination, Ended, Fault, FaultKind, HandlerAccount, Reason,
    TenantStatus, Usage,
};
use pumphouse_telemetry::{Metrics, Subscription};

/// The subscription under test.
pub(crate) const ORDERS: Subscription<'static> = Subscription {
    name: "orders",
    tenant: "acme",
    handler: "acme/orders",
    system: "aws_sqs",
    source: "orders-queue",
};

/// One scrape.
pub(crate) struct Scrape(Vec<Sample>);

struct Sample {
    name: String,
    /// As written, without the braces.
    labels: String,
    value: f64,
}

impl Scrape {
    /// Reads every sample; a line that is none is a failure.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).map(Sample::read).collect())
    }

    /// Whether the name has a sample, itself or by its buckets.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|s| s.name == name || s.name.strip_suffix("_bucket") == Some(name))
    }

    /// The sample of that name that has all these labels; the one with the fewest others.
    pub(crate) fn value(&self, name: &str, labels: &str) -> Option<f64> {
        let wanted: Vec<&str> = labels.split(',').filter(|label| !label.is_empty()).collect();
        self.0
            .iter()
            .filter(|s| s.name == name)
            .filter(|s| wanted.iter().all(|label| s.labels.split(',').any(|l| l == *label)))
            .min_by_key(|s| s.labels.matches(',').count())
            .map(|s| s.value)
    }

    /// How many counters are above 0.
    pub(crate) fn counted(&self) -> usize {
        self.0.iter().filter(|s| s.name.ends_with("_total") && s.value > 0.0).count()
    }

    /// The labels of a name; none where it has no sample.
    pub(crate) fn labels(&self, name: &str) -> Option<Vec<String>> {
        let mut samples = self.0.iter().filter(|s| s.name == name).peekable();
        samples.peek()?;
        let key = |label: &str| label.split('=').next().unwrap_or_default().to_owned();
        let every = samples.flat_map(|s| s.labels.split(',').map(key).collect::<Vec<_>>());
        Some(every.collect())
    }
}

impl Sample {
    fn read(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.strip_suffix('}').unwrap();
        Self { name: name.into(), labels: labels.into(), value: value.parse().unwrap() }
    }
}

/// A tenant whose handler did everything.
fn tenant() -> TenantStatus {
    let mut account = Account { calls: 1, acks: 1, ..Account::default() };
    let fault = Fault::new(FaultKind::Memory, "");
    account.enter(&Ended::fault(fault));
    TenantStatus {
        name: ORDERS.tenant.into(),
        account,
        handlers: vec![HandlerAccount { name: ORDERS.handler.into(), account }],
        weight: 100,
        computing: 1,
        waiting: 2,
        slowed: true,
    }
}

/// Metrics in which everything happened.
pub(crate) fn everything() -> Metrics {
    let metrics = Metrics::new();
    let recorder = metrics.subscription(ORDERS);
    let took = Duration::from_millis(3);
    let usage = Usage { cpu: took, memory_peak: 1 << 17, instantiation: took, ..Usage::default() };
    let (decision, reason) = (&Decision::Ack, Reason::DeliveryError);
    for event in [
        Event::Received { messages: 1, took },
        Event::ReceiveFailed { kind: "unavailable", took },
        Event::Handled { decision, fault: Some(FaultKind::Trap), count: Count(0), took, usage },
        Event::Routed { to: Destination::DeadLetter, reason, took },
        Event::Settled { action: "ack", failure: Some(Failure::Retry), took },
    ] {
        recorder.record(event);
    }
    metrics.accounts(&[tenant()]);
    metrics.refresh(
        &[SubscriptionStatus {
            name: ORDERS.name.into(),
            condition: Condition::Running,
            problem: None,
            in_flight: 1,
            oldest_in_progress: Some(took),
            handler: ORDERS.handler.into(),
        }],
        &[HandlerStatus {
            name: ORDERS.handler.into(),
            digest: "0123abcd".into(),
            component: "handlers/orders.wasm".into(),
            problem: None,
        }],
        false,
    );
    let depth = Depth { messages: Some(1), oldest_age: Some(took) };
    metrics.depth(ORDERS.name, Destination::DeadLetter, depth);
    metrics.held(ORDERS.name, 7);
    metrics.delivered_again(ORDERS.name, 1);
    metrics
}
