//! What is looked at rather than counted, replaced as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use pumphouse_contract::Destination;
use pumphouse_contract::ports::{Condition, Depth, HandlerStatus, SubscriptionStatus};

use super::accounts::{Accounts, OTHER};
use crate::names::{self, Name, labels};

pub(super) type Label = (&'static str, String);

/// The series of one gauge.
pub(super) type Series = Vec<(Vec<Label>, f64)>;

/// The latest look at the host.
#[derive(Debug)]
pub(crate) struct Sampled {
    look: Mutex<Look>,
    /// The most handlers that are shown one by one, and which of them have series of their own anyway.
    most: usize,
    accounts: Arc<Accounts>,
}

#[derive(Debug, Default)]
struct Look {
    subscriptions: Vec<SubscriptionStatus>,
    handlers: Vec<HandlerStatus>,
    /// Handlers that are not among them, and whose file on disk is not the version in use.
    others_rejected: usize,
    others: usize,
    configuration_rejected: bool,
    depths: BTreeMap<(String, &'static str), Depth>,
    held: BTreeMap<String, usize>,
    again: BTreeMap<String, u64>,
}

impl Sampled {
    pub(crate) fn new(most: usize, accounts: Arc<Accounts>) -> Self {
        Self { look: Mutex::default(), most, accounts }
    }

    pub(crate) fn refresh(
        &self,
        subscriptions: &[SubscriptionStatus],
        handlers: &[HandlerStatus],
        configuration_rejected: bool,
    ) {
        let (shown, others) = self.chosen(handlers);
        let mut look = self.lock();
        look.subscriptions = subscriptions.to_vec();
        look.handlers = shown;
        look.others = others.len();
        look.others_rejected = others.iter().filter(|one| one.problem.is_some()).count();
        look.configuration_rejected = configuration_rejected;
        let listed = |name: &String| subscriptions.iter().any(|s| s.name == *name);
        look.depths.retain(|(name, _), _| listed(name));
        look.held.retain(|name, _| listed(name));
        look.again.retain(|name, _| listed(name));
    }

    /// Where there are more handlers than may be shown: those that have series of their own, then the first by name.
    fn chosen<'a>(
        &self,
        handlers: &'a [HandlerStatus],
    ) -> (Vec<HandlerStatus>, Vec<&'a HandlerStatus>) {
        if handlers.len() <= self.most {
            return (handlers.to_vec(), Vec::new());
        }
        let (own, rest): (Vec<_>, Vec<_>) =
            handlers.iter().partition(|one| self.accounts.has(&one.name));
        let mut all = own.into_iter().chain(rest);
        let shown = all.by_ref().take(self.most).cloned().collect();
        (shown, all.collect())
    }

    pub(crate) fn depth(&self, subscription: &str, destination: Destination, depth: Depth) {
        let key = (subscription.to_owned(), destination.label());
        self.lock().depths.insert(key, depth);
    }

    pub(crate) fn held(&self, subscription: &str, messages: usize) {
        self.lock().held.insert(subscription.to_owned(), messages);
    }

    pub(crate) fn delivered_again(&self, subscription: &str, messages: u64) {
        self.lock().again.insert(subscription.to_owned(), messages);
    }

    fn lock(&self) -> MutexGuard<'_, Look> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    fn of_subscriptions(&self, value: impl Fn(&SubscriptionStatus) -> f64) -> Series {
        let labels = |s: &SubscriptionStatus| vec![(labels::SUBSCRIPTION, s.name.clone())];
        self.subscriptions.iter().map(|s| (labels(s), value(s))).collect()
    }

    fn of_handlers(&self, value: impl Fn(&HandlerStatus) -> f64) -> Series {
        let labels = |h: &HandlerStatus| vec![(labels::HANDLER, h.name.clone())];
        self.handlers.iter().map(|h| (labels(h), value(h))).collect()
    }

    fn rejected(&self) -> Series {
        let mut series = self.of_handlers(|h| flag(h.problem.is_some()));
        if self.others > 0 {
            series.push((
                vec![(labels::HANDLER, OTHER.to_owned())],
                number(self.others_rejected as u64),
            ));
        }
        series
    }

    fn of_destinations(&self, value: impl Fn(&Depth) -> Option<f64>) -> Series {
        let labels = |subscription: &String, destination: &str| {
            vec![
                (labels::SUBSCRIPTION, subscription.clone()),
                (labels::DESTINATION, destination.to_owned()),
            ]
        };
        self.depths
            .iter()
            .filter_map(|((name, to), depth)| Some((labels(name, to), value(depth)?)))
            .collect()
    }

    fn of_sources(&self) -> Series {
        let labels = |name: &String| vec![(labels::SUBSCRIPTION, name.clone())];
        self.held.iter().map(|(name, held)| (labels(name), number(*held as u64))).collect()
    }

    fn gauges(&self) -> [(Name, Series); 8] {
        let age = |s: &SubscriptionStatus| s.oldest_in_progress.unwrap_or_default().as_secs_f64();
        [
            (names::INFLIGHT, self.of_subscriptions(|s| number(s.in_flight as u64))),
            (names::OLDEST_IN_PROGRESS, self.of_subscriptions(age)),
            (names::HELD, self.of_sources()),
            (names::READY, self.of_subscriptions(|s| flag(s.condition == Condition::Running))),
            (names::DEAD_LETTER_DEPTH, self.of_destinations(|d| d.messages.map(number))),
            (
                names::DEAD_LETTER_OLDEST_AGE,
                self.of_destinations(|d| d.oldest_age.map(|age| age.as_secs_f64())),
            ),
            (names::HANDLER_UPDATE_REJECTED, self.rejected()),
            (names::CONFIG_REJECTED, vec![(Vec::new(), flag(self.configuration_rejected))]),
        ]
    }

    fn versions(&self) -> impl Iterator<Item = [(&'static str, &str); 2]> {
        self.handlers
            .iter()
            .map(|h| [(labels::HANDLER, h.name.as_str()), (labels::VERSION, h.digest.as_str())])
    }
}

impl Collector for Sampled {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let look = self.lock();
        for (name, series) in look.gauges() {
            encode_gauge(&mut encoder, name, &series)?;
        }
        encode_counter(&mut encoder, names::DELIVERED_AGAIN, &look.again)?;
        let Name { help, .. } = names::HANDLER_VERSION;
        let base = names::HANDLER_VERSION.base();
        let mut versions =
            encoder.encode_descriptor(base, &sentence(help), None, MetricType::Info)?;
        for version in look.versions() {
            versions.encode_info(&version)?;
        }
        Ok(())
    }
}

pub(super) fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: Name,
    series: &Series,
) -> Result<(), std::fmt::Error> {
    let unit = name.unit();
    let help = sentence(name.help);
    let mut gauge =
        encoder.encode_descriptor(name.base(), &help, unit.as_ref(), MetricType::Gauge)?;
    for (labels, value) in series {
        gauge.encode_family(labels)?.encode_gauge(value)?;
    }
    Ok(())
}

/// One that is counted elsewhere, by subscription.
fn encode_counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: Name,
    series: &BTreeMap<String, u64>,
) -> Result<(), std::fmt::Error> {
    let help = sentence(name.help);
    let mut counter = encoder.encode_descriptor(name.base(), &help, None, MetricType::Counter)?;
    for (subscription, value) in series {
        let labels = [(labels::SUBSCRIPTION, subscription.as_str())];
        counter.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
    }
    Ok(())
}

/// The registry ends its own help texts so.
pub(super) fn sentence(help: &str) -> String {
    format!("{help}.")
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[expect(clippy::cast_precision_loss, reason = "what is shown is a floating-point number")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}
