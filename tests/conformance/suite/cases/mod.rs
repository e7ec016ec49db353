//! The cases, by rule. Each runs for every configuration, in both variants, against each of its servers; none can
//! be chosen away: where a row lacks what a case is about, the case shows that it lacks it.

mod budget;
mod carrying;
mod copies;
mod counting;
mod deduplicating;
mod failing;
mod findings;
mod frugality;
mod guard;
mod ordering;
mod rejecting;
mod retrying;
mod semantics;
mod settling;

use anyhow::Result;
use pumphouse_contract::copy::names::RESERVED;
use pumphouse_contract::ports::{BoxFuture, Counter};
use pumphouse_contract::{Delivery, Headers, Message};
use serde_json::{Value, json};

use crate::bench::{Bench, same};
use crate::host::Host;

/// What a trial showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    /// That the rule holds.
    Present,
    /// That the row lacks what the rule is about, and what holds instead.
    Absent,
}

pub(crate) use Shown::{Absent, Present};

/// One thing that a rule says.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    /// Tells the cases of a rule apart.
    pub(crate) name: &'static str,
    /// What is shown, for the table.
    pub(crate) says: &'static str,
    pub(crate) run: fn(Bench) -> BoxFuture<'static, Result<Shown>>,
}

impl Case {
    /// Letter and number of its rule.
    fn place(&self) -> (&'static str, u32) {
        let (letter, number) = self.rule.split_once('-').unwrap_or((self.rule, ""));
        (letter, number.parse().unwrap_or_default())
    }

    /// The name of its trials.
    pub(crate) fn title(&self) -> String {
        if self.name.is_empty() {
            return self.rule.to_owned();
        }
        format!("{} {}", self.rule, self.name)
    }
}

macro_rules! case {
    ($rule:literal, $name:literal, $run:expr, $says:literal) => {
        $crate::cases::Case {
            rule: $rule,
            name: $name,
            says: $says,
            run: |bench| Box::pin($run(bench)),
        }
    };
}
pub(crate) use case;

/// Every case, in the order of the rules.
pub(crate) fn all() -> Vec<Case> {
    let mut all = [
        budget::CASES,
        carrying::CASES,
        copies::CASES,
        counting::CASES,
        deduplicating::CASES,
        failing::CASES,
        findings::CASES,
        frugality::CASES,
        guard::CASES,
        ordering::CASES,
        rejecting::CASES,
        retrying::CASES,
        semantics::CASES,
        settling::CASES,
    ]
    .concat();
    all.sort_by_key(Case::place);
    all
}

fn ack() -> Value {
    json!({ "do": "ack" })
}

fn defer() -> Value {
    json!({ "do": "defer" })
}

fn defer_ms(ms: u64) -> Value {
    json!({ "do": "defer", "ms": ms })
}

fn reject(reason: &str) -> Value {
    json!({ "do": "reject", "reason": reason, "text": "told to" })
}

/// One step for each count; the last one from then on.
fn steps(steps: impl IntoIterator<Item = Value>) -> Value {
    json!({ "do": "sequence", "steps": steps.into_iter().collect::<Vec<_>>() })
}

/// Defers at the counts below `times`, then acknowledges.
fn defers(times: usize) -> Value {
    steps(std::iter::repeat_n(defer(), times).chain([ack()]))
}

fn is_exact(host: &Host) -> bool {
    host.capabilities().counter == Counter::Exact
}

/// Counts of one message in the order of its calls: each above the one before (C-1).
fn rising(counts: &[u32]) -> Result<()> {
    let up = counts.is_sorted_by(|one, next| one < next);
    anyhow::ensure!(up, "counts must go up from delivery to delivery, saw {counts:?}");
    Ok(())
}

/// How often a message was handled: `times` where the counter is exact, else from 1 to `times` (C-4).
fn handled_within(host: &Host, tag: &str, times: usize) -> Result<()> {
    let calls = host.calls.counts(tag);
    if is_exact(host) {
        return same(&format!("calls for {tag}, counts {calls:?}"), calls.len(), times);
    }
    let within = (1..=times).contains(&calls.len());
    anyhow::ensure!(within, "{tag}: expected 1 to {times} calls, saw counts {calls:?}");
    Ok(())
}

/// A piece of a copy's metadata.
fn metadata<'a>(copy: &'a Delivery, name: &str) -> &'a str {
    copy.message.headers.text(name).unwrap_or_default()
}

/// The headers of a message without a copy's metadata, sorted by name.
fn own_headers(message: &Message) -> Headers {
    let mut pairs: Vec<_> = message
        .headers
        .iter()
        .filter(|(name, _)| !RESERVED.contains(name))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    pairs.into_iter().collect()
}
