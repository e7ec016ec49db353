//! The accounts of tenants and handlers as metrics.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, NoLabelSet};
use prometheus_client::metrics::MetricType;
use pumphouse_contract::Account;

use super::accounts::{Accounts, Moment, Row};
use super::sampled::{Label, Series, encode_gauge, number, sentence};
use crate::names::{self, Name, labels};

/// Shows accounts.
#[derive(Debug)]
pub(crate) struct Spent(pub(crate) Arc<Accounts>);

/// How a call can end. A call is either answered, or ends in a fault, or is dropped.
type Outcome = (&'static str, fn(&Account) -> u64);

const OUTCOMES: [Outcome; 5] = [
    ("ack", |account| account.acks),
    ("defer", |account| account.defers),
    ("reject", |account| account.rejects),
    ("fault", Account::all_faults),
    ("dropped", |account| account.dropped),
];

/// What is counted in whole numbers, one series a row.
const COUNTS: [(Name, fn(&Account) -> u64); 4] = [
    (names::GUEST_HOST_CALLS, |account| account.host_calls),
    (names::GUEST_RECEIVED, |account| account.bytes_in),
    (names::GUEST_SENT, |account| account.bytes_out),
    (names::GUEST_LOG_DROPPED, |account| account.log_dropped),
];

const TIMES: [(Name, fn(&Account) -> Duration); 2] =
    [(names::GUEST_CPU, |account| account.cpu), (names::GUEST_WAITED, |account| account.waited)];

const MOMENTS: [(Name, fn(&Moment) -> u64); 4] = [
    (names::TENANT_INSTANCES, |moment| moment.instances),
    (names::TENANT_COMPUTING, |moment| moment.computing),
    (names::TENANT_WAITING, |moment| moment.waiting),
    (names::TENANT_SLOWED, |moment| moment.slowed),
];

impl Collector for Spent {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let rows = self.0.rows();
        counter(&mut encoder, names::GUEST_CALLS, outcomes(&rows))?;
        counter(&mut encoder, names::GUEST_FAULTS, faults(&rows))?;
        counter(&mut encoder, names::GUEST_LIMIT_TRIPS, trips(&rows))?;
        for (name, of) in COUNTS {
            let series = rows.iter().map(|row| (row.labels(), of(&row.account)));
            counter(&mut encoder, name, series)?;
        }
        for (name, of) in TIMES {
            let series = rows.iter().map(|row| (row.labels(), of(&row.account).as_secs_f64()));
            counter(&mut encoder, name, series)?;
        }
        let lately = |row: &Row| (row.labels(), number(row.account.memory_peak_lately));
        let memory: Series = rows.iter().map(lately).collect();
        encode_gauge(&mut encoder, names::GUEST_MEMORY_LATELY, &memory)?;
        let moments = self.0.moments();
        for (name, of) in MOMENTS {
            let tenant = |moment: &Moment| vec![(labels::TENANT, moment.tenant.clone())];
            let series: Series = moments.iter().map(|one| (tenant(one), number(of(one)))).collect();
            encode_gauge(&mut encoder, name, &series)?;
        }
        Ok(())
    }
}

impl Row {
    fn labels(&self) -> Vec<Label> {
        vec![(labels::TENANT, self.tenant.clone()), (labels::HANDLER, self.handler.clone())]
    }

    fn labels_and(&self, label: &'static str, value: &str) -> Vec<Label> {
        let mut all = self.labels();
        all.push((label, value.to_owned()));
        all
    }
}

/// Every outcome from the first call on, so that an alert sees the first fault.
fn outcomes(rows: &[Row]) -> impl Iterator<Item = (Vec<Label>, u64)> {
    rows.iter().flat_map(|row| {
        OUTCOMES
            .iter()
            .map(|(outcome, of)| (row.labels_and(labels::OUTCOME, outcome), of(&row.account)))
    })
}

/// Only the kinds that there were: a thousand handlers have thirteen thousand.
fn faults(rows: &[Row]) -> impl Iterator<Item = (Vec<Label>, u64)> {
    rows.iter().flat_map(|row| {
        let kinds = row.account.fault_kinds();
        kinds.map(|(kind, faults)| (row.labels_and(labels::KIND, kind.label()), faults))
    })
}

fn trips(rows: &[Row]) -> impl Iterator<Item = (Vec<Label>, u64)> {
    rows.iter().flat_map(|row| {
        row.account
            .limit_trips()
            .map(|(limit, trips)| (row.labels_and(labels::LIMIT, limit), trips))
    })
}

fn counter<V: EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: Name,
    series: impl Iterator<Item = (Vec<Label>, V)>,
) -> Result<(), std::fmt::Error> {
    let (unit, help) = (name.unit(), sentence(name.help));
    let mut counter =
        encoder.encode_descriptor(name.base(), &help, unit.as_ref(), MetricType::Counter)?;
    for (labels, value) in series {
        counter.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}
