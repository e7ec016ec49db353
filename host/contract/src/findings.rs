//! Findings: what a configuration will do that its author hardly meant, said before anything is consumed.
//!
//! The rules are pure and all run; none stops another. Warnings never block a start.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use crate::Reason;
use crate::policy::{Budget, Destinations};

/// A source or destination by its canonical name, so that two spellings of one queue are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The transport's key in the configuration: `embedded`, `sqs`.
    pub transport: &'static str,
    /// The canonical name.
    pub name: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.name)
    }
}

/// Which rule found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Budget 0 or below −1.
    F1,
    /// The broker's own limit comes first.
    F2,
    /// The budget can't be enforced.
    F3,
    /// An unbounded retry.
    F4,
    /// A destination that loops, or is missing.
    F5,
    /// A budget without backoff.
    F6,
    /// A deduplication time shorter than a redelivery can take.
    F7,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self {
            Self::F1 => 1,
            Self::F2 => 2,
            Self::F3 => 3,
            Self::F4 => 4,
            Self::F5 => 5,
            Self::F6 => 6,
            Self::F7 => 7,
        };
        write!(f, "F-{number}")
    }
}

/// Whether a finding blocks the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// It doesn't.
    Warning,
    /// It does.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// By which rule.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// In which subscription.
    pub subscription: String,
    /// What and why, and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.rule, self.text)
    }
}

/// What the rules need to know of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionFacts {
    /// Its name.
    pub name: String,
    /// Where its messages come from.
    pub source: Address,
    /// Whether it says that its source holds rejected copies.
    pub rejected: bool,
    /// `max_deliveries`.
    pub budget: Budget,
    /// M: the most deliveries, the first included, before the broker itself moves a message; where known.
    pub native_limit: Option<u32>,
    /// The deliveries after which other clients of the same source stop, where the broker itself does nothing then
    /// (RocketMQ by POP); where known.
    pub advisory_limit: Option<u32>,
    /// Why the count can't advance at this source; none where it does.
    pub count_stands_still: Option<String>,
    /// `retry.backoff`.
    pub backoff: Duration,
    /// `retry.max_backoff`.
    pub max_backoff: Duration,
    /// `retry.window`.
    pub window: Option<Duration>,
    /// `dead_letter`.
    pub dead_letter: Option<Address>,
    /// `invalid_message`.
    pub invalid_message: Option<Address>,
    /// `deduplicate.ttl`.
    pub deduplicate_ttl: Option<Duration>,
    /// How long the source keeps a message, where known.
    pub retention: Option<Duration>,
}

/// Every finding about these subscriptions, in the order of the subscriptions and then of the rules.
#[must_use]
pub fn review(subscriptions: &[SubscriptionFacts]) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        subscriptions.iter().flat_map(|one| review_one(one, subscriptions)).collect();
    found.extend(loops(subscriptions));
    found
}

fn review_one(one: &SubscriptionFacts, all: &[SubscriptionFacts]) -> Vec<Finding> {
    let checks: [(Rule, Option<String>); 7] = [
        (Rule::F1, suspicious_budget(one)),
        (Rule::F2, native_limit_first(one).or_else(|| advisory_limit_passed(one))),
        (Rule::F3, budget_unenforceable(one, all)),
        (Rule::F4, unbounded(one)),
        (Rule::F5, discards(one)),
        (Rule::F6, no_backoff(one)),
        (Rule::F7, short_memory(one)),
    ];
    checks
        .into_iter()
        .filter_map(|(rule, text)| {
            let subscription = one.name.clone();
            text.map(|text| Finding { rule, severity: Severity::Warning, subscription, text })
        })
        .collect()
}

fn suspicious_budget(one: &SubscriptionFacts) -> Option<String> {
    let Budget::Suspicious(number) = one.budget else { return None };
    Some(format!(
        "subscription `{}` has max_deliveries = {number}, so its first deferral rejects; write -1 for no budget, or 1 for one delivery",
        one.name
    ))
}

fn native_limit_first(one: &SubscriptionFacts) -> Option<String> {
    let Budget::Deliveries(budget) = one.budget else { return None };
    let limit = one.native_limit.filter(|limit| budget >= *limit)?;
    Some(format!(
        "subscription `{}` has max_deliveries = {budget} and its broker moves a message after {limit} deliveries: the effective limit is {limit}, and what the broker moves carries no rejection metadata; set max_deliveries below {limit}",
        one.name
    ))
}

/// The limit is no M, since the broker does not act on it; who reads the same source by other means does.
fn advisory_limit_passed(one: &SubscriptionFacts) -> Option<String> {
    let Budget::Deliveries(budget) = one.budget else { return None };
    let limit = one.advisory_limit.filter(|limit| budget >= *limit)?;
    Some(format!(
        "subscription `{}` has max_deliveries = {budget}, and its source says {limit} deliveries at most: the broker does not act on that here, so the effective limit is {budget}, but other clients of the same source stop at {limit}; set max_deliveries below {limit} to have one limit",
        one.name
    ))
}

/// F-3 for one subscription: why its budget can't be enforced; none where it can, or has none. A transport logs
/// the same text when it opens the channel.
#[must_use]
pub fn budget_unenforceable(one: &SubscriptionFacts, all: &[SubscriptionFacts]) -> Option<String> {
    let Budget::Deliveries(budget @ 2..) = one.budget else { return None };
    let reason = one.count_stands_still.clone().or_else(|| reads_copies(one, all))?;
    Some(format!(
        "subscription `{}` has max_deliveries = {budget}, which can't be enforced: {reason}",
        one.name
    ))
}

fn reads_copies(one: &SubscriptionFacts, all: &[SubscriptionFacts]) -> Option<String> {
    let named = all.iter().find(|other| destinations(other).any(|(_, to)| *to == one.source));
    match named {
        Some(other) => Some(format!(
            "its source is a rejection destination of `{}`, and a rejected copy keeps the count that it was stamped with",
            other.name
        )),
        None => one
            .rejected
            .then(|| "a rejected copy keeps the count that it was stamped with".to_owned()),
    }
}

fn unbounded(one: &SubscriptionFacts) -> Option<String> {
    let bounded =
        one.budget != Budget::Unlimited || one.window.is_some() || one.native_limit.is_some();
    (!bounded).then(|| {
        format!(
            "subscription `{}` retries without a bound: set max_deliveries, retry.window or both",
            one.name
        )
    })
}

fn discards(one: &SubscriptionFacts) -> Option<String> {
    let configured = Destinations {
        dead_letter: one.dead_letter.is_some(),
        invalid_message: one.invalid_message.is_some(),
    };
    let lost: Vec<&str> = [Reason::Unacceptable, Reason::DeliveryError, Reason::None]
        .into_iter()
        .filter(|reason| configured.choose(*reason).is_none())
        .map(Reason::label)
        .collect();
    (!lost.is_empty()).then(|| {
        format!(
            "subscription `{}` has no dead_letter destination: messages rejected as {} are discarded",
            one.name,
            lost.join(", ")
        )
    })
}

fn no_backoff(one: &SubscriptionFacts) -> Option<String> {
    let Budget::Deliveries(budget) = one.budget else { return None };
    one.backoff.is_zero().then(|| {
        format!(
            "subscription `{}` spends max_deliveries = {budget} without backoff, which hammers whatever is failing: set retry.backoff",
            one.name
        )
    })
}

fn short_memory(one: &SubscriptionFacts) -> Option<String> {
    let ttl = one.deduplicate_ttl?;
    let redelivery = one.window.map(|window| window.saturating_add(one.max_backoff));
    let needed = redelivery.max(one.retention).filter(|needed| ttl < *needed)?;
    Some(format!(
        "subscription `{}` forgets a message after deduplicate.ttl = {} s, and it can come back for {} s: a late duplicate is handled again",
        one.name,
        ttl.as_secs(),
        needed.as_secs()
    ))
}

fn destinations(one: &SubscriptionFacts) -> impl Iterator<Item = (&'static str, &Address)> {
    let dead_letter = one.dead_letter.iter().map(|to| ("dead_letter", to));
    dead_letter.chain(one.invalid_message.iter().map(|to| ("invalid_message", to)))
}

/// F-5: a message that is rejected again and again must not come back to where it started.
fn loops(subscriptions: &[SubscriptionFacts]) -> Vec<Finding> {
    let mut seen: Vec<Vec<usize>> = Vec::new();
    let mut found = Vec::new();
    for start in 0..subscriptions.len() {
        let Some(chain) = chain_back_to(start, subscriptions) else { continue };
        let mut members = chain.clone();
        members.sort_unstable();
        if seen.contains(&members) {
            continue;
        }
        seen.push(members);
        found.extend(loop_finding(&chain, subscriptions));
    }
    found
}

fn loop_finding(chain: &[usize], subscriptions: &[SubscriptionFacts]) -> Option<Finding> {
    let links: Vec<String> = chain
        .iter()
        .filter_map(|index| subscriptions.get(*index))
        .map(|one| format!("`{}` (reads {})", one.name, one.source))
        .collect();
    let first = subscriptions.get(*chain.first()?)?;
    Some(Finding {
        rule: Rule::F5,
        severity: Severity::Error,
        subscription: first.name.clone(),
        text: format!(
            "rejected messages would circle: {} rejects back to {}",
            links.join(" rejects to "),
            first.source
        ),
    })
}

/// The shortest way from a subscription over rejection destinations back to its own source.
fn chain_back_to(start: usize, subscriptions: &[SubscriptionFacts]) -> Option<Vec<usize>> {
    let goal = &subscriptions.get(start)?.source;
    let mut came_from: HashMap<usize, usize> = HashMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (_, to) in subscriptions.get(at).into_iter().flat_map(destinations) {
            if to == goal {
                return Some(trace(start, at, &came_from));
            }
            for next in readers_of(to, subscriptions) {
                if next != start && !came_from.contains_key(&next) {
                    came_from.insert(next, at);
                    queue.push_back(next);
                }
            }
        }
    }
    None
}

fn readers_of<'a>(
    address: &'a Address,
    subscriptions: &'a [SubscriptionFacts],
) -> impl Iterator<Item = usize> + 'a {
    subscriptions.iter().enumerate().filter(|(_, one)| one.source == *address).map(|(i, _)| i)
}

fn trace(start: usize, end: usize, came_from: &HashMap<usize, usize>) -> Vec<usize> {
    let mut chain = vec![end];
    let mut at = end;
    while at != start {
        let Some(before) = came_from.get(&at) else { break };
        at = *before;
        chain.push(at);
    }
    chain.reverse();
    chain
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
