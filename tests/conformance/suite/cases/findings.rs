//! F-1 to F-7: the rules over the facts that a configuration and its transport give.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::{Budget, Finding, Rule, Severity, SubscriptionFacts, review};

use super::{Absent, Case, Present, Shown, case};
use crate::bench::{Bench, Channel, same};
use crate::rows::{Place, Wants};

pub(super) const CASES: &[Case] = &[
    case!("F-1", "", suspicious, "a budget of 0 or below −1 is asked about"),
    case!(
        "F-2",
        "",
        native_first,
        "R ≥ M, with M as the real queue says it, names the effective limit"
    ),
    case!(
        "F-2",
        "advisory",
        advisory,
        "a limit that other clients keep to and the broker does not act on is named, and is no M"
    ),
    case!(
        "F-3",
        "",
        unenforceable,
        "a budget that can't be kept is named: over a rejection destination, or where nothing counts"
    ),
    case!(
        "F-4",
        "",
        unbounded,
        "no budget, no window and no limit of the broker's is an unbounded retry"
    ),
    case!("F-5", "", circles, "a loop is an error, a missing destination a warning"),
    case!("F-6", "", no_backoff, "a budget without backoff is warned of"),
    case!(
        "F-7",
        "",
        short_memory,
        "a deduplication shorter than a redelivery can take is warned of"
    ),
];

/// A sound subscription over the queues of a channel: what the transport says, and what is configured.
pub(crate) async fn facts(channel: &Channel) -> Result<SubscriptionFacts> {
    let found = channel.facts().await?;
    let address = |place| channel.bench.rig().address(&channel.queue(place));
    Ok(SubscriptionFacts {
        name: "orders".to_owned(),
        source: address(Place::Source),
        rejected: false,
        budget: Budget::Deliveries(3),
        native_limit: found.native_limit,
        advisory_limit: found.advisory_limit,
        count_stands_still: None,
        backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(60),
        window: None,
        dead_letter: Some(address(Place::DeadLetter)),
        invalid_message: Some(address(Place::Invalid)),
        deduplicate_ttl: None,
        retention: found.retention,
    })
}

/// The one finding of these subscriptions; it must be of that rule, and say all of this.
fn only(subscriptions: &[SubscriptionFacts], rule: Rule, says: &[&str]) -> Result<Finding> {
    let mut found = review(subscriptions);
    same(&format!("findings {found:?}"), found.len(), 1)?;
    let finding = found.pop().context("no finding")?;
    same("the rule", finding.rule, rule)?;
    for text in says {
        ensure!(finding.text.contains(text), "{:?} does not say {text:?}", finding.text);
    }
    Ok(finding)
}

fn warns(subscriptions: &[SubscriptionFacts], rule: Rule, says: &[&str]) -> Result<()> {
    same("the severity", only(subscriptions, rule, says)?.severity, Severity::Warning)
}

async fn sound(bench: &Bench) -> Result<SubscriptionFacts> {
    let sound = facts(&bench.channel().await?).await?;
    same("findings of a sound subscription", review(std::slice::from_ref(&sound)), vec![])?;
    Ok(sound)
}

async fn suspicious(bench: Bench) -> Result<Shown> {
    let sound = sound(&bench).await?;
    for budget in [0, -2] {
        let odd = SubscriptionFacts { budget: Budget::Suspicious(budget), ..sound.clone() };
        warns(&[odd], Rule::F1, &["`orders`", &budget.to_string(), "-1 for", "1 for"])?;
    }
    Ok(Present)
}

async fn native_first(bench: Bench) -> Result<Shown> {
    let limit = bench.configuration().native_limit(4);
    let channel = bench.channel_with(Wants { native: Some(limit), ..Wants::default() }).await?;
    let facts = facts(&channel).await?;
    let with = |budget| SubscriptionFacts { budget: Budget::Deliveries(budget), ..facts.clone() };
    same("findings below the limit", review(&[with(limit - 1)]), vec![])?;
    if !bench.configuration().has_native_limit() {
        same("the broker's own limit", facts.native_limit, None)?;
        let unadvised = SubscriptionFacts { advisory_limit: None, ..with(limit) };
        same("findings at any budget", review(&[unadvised]), vec![])?;
        return Ok(Absent);
    }
    same("M as the queue says it", facts.native_limit, Some(limit))?;
    let effective = format!("the effective limit is {limit}");
    let budget = format!("max_deliveries = {limit}");
    warns(&[with(limit)], Rule::F2, &["`orders`", &budget, &effective])?;
    warns(&[with(9)], Rule::F2, &["max_deliveries = 9", &effective])?;
    Ok(Present)
}

async fn advisory(bench: Bench) -> Result<Shown> {
    let advises = bench.configuration().is_rocketmq();
    let wants = Wants { native: advises.then_some(4), ..Wants::default() };
    let facts = facts(&bench.channel_with(wants).await?).await?;
    let with = |budget| SubscriptionFacts { budget: Budget::Deliveries(budget), ..facts.clone() };
    if !advises {
        same("such a limit", facts.advisory_limit, None)?;
        return Ok(Absent);
    }
    same("the limit as the group says it", facts.advisory_limit, Some(4))?;
    same("the broker's own limit", facts.native_limit, None)?;
    same("findings below the limit", review(&[with(3)]), vec![])?;
    let says = ["`orders`", "max_deliveries = 9", "the effective limit is 9", "stop at 4"];
    warns(&[with(9)], Rule::F2, &says)?;
    Ok(Present)
}

async fn unenforceable(bench: Bench) -> Result<Shown> {
    let sound = sound(&bench).await?;
    let reader = SubscriptionFacts {
        name: "reader".to_owned(),
        source: sound.dead_letter.clone().context("a destination")?,
        dead_letter: Some(bench.rig().address("elsewhere")),
        invalid_message: None,
        ..sound.clone()
    };
    let says = ["`reader`", "= 3", "can't be enforced", "rejection destination of `orders`"];
    warns(&[sound.clone(), reader.clone()], Rule::F3, &says)?;
    let declared = SubscriptionFacts { rejected: true, ..reader };
    warns(&[declared], Rule::F3, &["`reader`", "keeps the count"])?;
    if bench.configuration().is_pubsub() {
        let channel = bench.channel_with(Wants { uncounted: true, ..Wants::default() }).await?;
        let counts = channel.source().await?.capabilities().count_advances;
        same("whether a source without a policy counts", counts, false)?;
        let uncounted = SubscriptionFacts {
            count_stands_still: Some("there is no policy".to_owned()),
            ..facts(&channel).await?
        };
        warns(&[uncounted], Rule::F3, &["`orders`", "= 3", "there is no policy"])?;
    }
    Ok(Present)
}

async fn unbounded(bench: Bench) -> Result<Shown> {
    let channel = bench.channel_with(Wants { uncounted: true, ..Wants::default() }).await?;
    let unbounded = SubscriptionFacts { budget: Budget::Unlimited, ..facts(&channel).await? };
    warns(std::slice::from_ref(&unbounded), Rule::F4, &["`orders`", "without a bound"])?;
    let windowed = SubscriptionFacts { window: Some(Duration::from_secs(9)), ..unbounded };
    same("findings with a window", review(&[windowed]), vec![])?;
    let limit = bench.configuration().native_limit(4);
    let channel = bench.channel_with(Wants { native: Some(limit), ..Wants::default() }).await?;
    let limited = SubscriptionFacts { budget: Budget::Unlimited, ..facts(&channel).await? };
    let found = review(std::slice::from_ref(&limited)).len();
    same(
        "findings with the broker's own limit",
        found,
        usize::from(limited.native_limit.is_none()),
    )?;
    Ok(Present)
}

async fn circles(bench: Bench) -> Result<Shown> {
    let sound = sound(&bench).await?;
    let to_itself = SubscriptionFacts {
        dead_letter: Some(sound.source.clone()),
        // A larger budget could not be enforced there, which would be a second finding.
        budget: Budget::Deliveries(1),
        ..sound.clone()
    };
    let finding = only(&[to_itself], Rule::F5, &["`orders`", "circle"])?;
    same("the severity", finding.severity, Severity::Error)?;
    let nowhere = SubscriptionFacts { dead_letter: None, invalid_message: None, ..sound.clone() };
    warns(&[nowhere], Rule::F5, &["unacceptable, delivery-error, none"])?;
    let half = SubscriptionFacts { dead_letter: None, ..sound };
    warns(&[half], Rule::F5, &["delivery-error, none"])?;
    Ok(Present)
}

async fn no_backoff(bench: Bench) -> Result<Shown> {
    let hammering = SubscriptionFacts { backoff: Duration::ZERO, ..sound(&bench).await? };
    warns(&[hammering], Rule::F6, &["`orders`", "without backoff"])?;
    Ok(Present)
}

async fn short_memory(bench: Bench) -> Result<Shown> {
    let sound = sound(&bench).await?;
    let with = |ttl, window| SubscriptionFacts {
        deduplicate_ttl: Some(Duration::from_secs(ttl)),
        window: Some(Duration::from_secs(window)),
        ..sound.clone()
    };
    let weeks = 30 * 24 * 3_600;
    same("findings of a long memory", review(&[with(weeks, 600)]), vec![])?;
    match sound.retention {
        Some(retention) => {
            let short = with(retention.as_secs() - 1, 600);
            warns(&[short], Rule::F7, &[&format!("for {} s", retention.as_secs())])?;
        }
        None => warns(&[with(659, 600)], Rule::F7, &["659 s", "for 660 s"])?,
    }
    Ok(Present)
}
