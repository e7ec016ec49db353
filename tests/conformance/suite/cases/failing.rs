//! C-9, C-13, C-14, C-15: publishes, removals and releases that fail, and the broker's own limit.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::copy::names;
use pumphouse_contract::ports::Action;
use tokio::time::sleep;
use tracing::Level;

use super::{
    Absent, Case, Present, Shown, ack, case, defer, defer_ms, handled_within, metadata, rising,
    steps,
};
use crate::bench::{Bench, Channel, both, same, until};
use crate::host::{Host, Setup};
use crate::logs::Line;
use crate::rows::{Place, Wants};

pub(super) const CASES: &[Case] = &[
    case!(
        "C-9",
        "confirmed first",
        confirmed_first,
        "the original is removed only after the copy is confirmed"
    ),
    case!(
        "C-9",
        "unknown outcome",
        unknown_outcome,
        "an unknown outcome counts as failed, and may leave two copies"
    ),
    case!(
        "C-9",
        "failed removal",
        failed_removal,
        "a failed removal is an error with the message id, and the host goes on"
    ),
    case!(
        "C-13",
        "kept",
        kept,
        "a publish that fails keeps the original, and no publish makes a destination"
    ),
    case!(
        "C-13",
        "backoff",
        backoff,
        "it is released after the backoff, 10 s at most, 0 where there is none"
    ),
    case!(
        "C-13",
        "failed release",
        failed_release,
        "a failed release is an error, and the lease lapses"
    ),
    case!(
        "C-14",
        "",
        native_ends_it,
        "only the broker's own limit ends a publish that keeps failing"
    ),
    case!(
        "C-15",
        "",
        effective_limit,
        "the effective limit is min(R, M), and what the broker moves carries no metadata"
    ),
];

pub(super) const NOT_ROUTED: &str = "rejected message could not be routed and stays at its source";
pub(super) const UNSETTLED: &str = "settlement failed; the message may be handled again";

/// The lines of a host at error with that text, each naming the message.
fn errors(host: &Host, text: &str, tag: &str) -> Result<Vec<Line>> {
    let lines = host.lines(Level::ERROR, text);
    let call = host.calls.of(tag).into_iter().next().context("the message was never handled")?;
    for line in &lines {
        same("the message that the error names", line.field("message_id"), &call.message.id)?;
    }
    Ok(lines)
}

async fn confirmed_first(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(1)).await?;
    host.publishes_fail(Place::DeadLetter, 2);
    channel.send("m", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let actions: Vec<Action> = host.tap.settled().iter().map(|one| one.action).collect();
    let back = Action::Release(Duration::ZERO);
    same("the settlements", actions, vec![back, back, Action::Ack])?;
    same("errors", errors(&host, NOT_ROUTED, "m")?.len(), 2)?;
    channel.copy(Place::DeadLetter).await?;
    Ok(Present)
}

async fn unknown_outcome(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(1)).await?;
    host.publishes_unconfirmed(Place::DeadLetter, 1);
    channel.send("m", defer()).await?;
    host.noted("Routed", 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("errors", errors(&host, NOT_ROUTED, "m")?.len(), 1)?;
    // Where the destination deduplicates, the second copy is the first one.
    let copies = if bench.configuration().deduplicates() { 1 } else { 2 };
    channel.copies(Place::DeadLetter, copies).await?;
    Ok(Present)
}

async fn failed_removal(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let host = channel.host(Setup { short_lease: true, ..Setup::budget(1) }).await?;
    host.acks_fail(2);
    channel.send("m", defer()).await?;
    until("the failed removal is logged", || !host.lines(Level::ERROR, UNSETTLED).is_empty())
        .await?;
    let lines = errors(&host, UNSETTLED, "m")?;
    same("what failed", lines.first().map(|line| line.field("action")), Some("ack"))?;
    channel.send("next", ack()).await?;
    host.acked("next").await?;
    host.called("m", 2).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    rising(&host.calls.counts("m"))?;
    ensure!(channel.depth(Place::DeadLetter).await? > 0, "the copy is gone");
    Ok(Present)
}

async fn kept(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let missing = channel.queue(Place::Missing);
    let setup = Setup { dead_letter: Some(Place::Missing), ..Setup::budget(1) };
    let second = Duration::from_secs(1);
    let host = channel.host(setup.with_backoff(second)).await?;
    channel.send("m", defer()).await?;
    until("it was released twice", || host.tap.releases("m").len() >= 2).await?;
    let lines = errors(&host, NOT_ROUTED, "m")?;
    ensure!(lines.iter().all(|line| line.field("reason") == "delivery-error"), "{lines:?}");
    same("the releases", host.tap.releases("m"), vec![second, second * 2])?;
    ensure!(!bench.rig().exists(&missing).await?, "a publish made its destination");
    same("messages at the source", channel.depth(Place::Source).await?, 1)?;
    bench.rig().create_queue(&missing).await?;
    channel.holds(Place::Missing, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    Ok(Present)
}

async fn backoff(bench: Bench) -> Result<Shown> {
    let first_release = async |base: Duration| -> Result<Duration> {
        let channel = bench.channel().await?;
        let host = channel.host(Setup::budget(1).with_backoff(base)).await?;
        host.publishes_fail(Place::DeadLetter, 1);
        channel.send("m", defer()).await?;
        until("it was released", || !host.tap.releases("m").is_empty()).await?;
        host.stop().await?;
        host.tap.releases("m").first().copied().context("no release")
    };
    let minute = Duration::from_secs(60);
    let (capped, none) = both(first_release(minute), first_release(Duration::ZERO)).await?;
    same("the release after a backoff of a minute", capped, Duration::from_secs(10))?;
    same("the release without a backoff", none, Duration::ZERO)?;
    Ok(Present)
}

async fn failed_release(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let host = channel.host(Setup { short_lease: true, ..Setup::default() }).await?;
    host.releases_fail(2);
    channel.send("m", steps([defer_ms(0), ack()])).await?;
    until("the failed release is logged", || !host.lines(Level::ERROR, UNSETTLED).is_empty())
        .await?;
    let lines = errors(&host, UNSETTLED, "m")?;
    same("what failed", lines.first().map(|line| line.field("action")), Some("release"))?;
    host.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    rising(&host.calls.counts("m"))?;
    Ok(Present)
}

async fn native_ends_it(bench: Bench) -> Result<Shown> {
    let channel = bench.channel_with(Wants { native: Some(5), ..Wants::default() }).await?;
    let setup = Setup { dead_letter: Some(Place::Missing), ..Setup::budget(3) };
    if !bench.configuration().has_native_limit() {
        return guard_ends_the_calls(&bench, &channel, setup).await;
    }
    let host = channel.host(setup).await?;
    channel.send("m", defer()).await?;
    if !bench.configuration().native_moves() {
        return ends_unmoved(&channel, &host).await;
    }
    channel.holds(Place::Native, 1).await?;
    let calls = host.calls.len();
    ensure!(calls > 3 && calls <= 5, "expected 4 or 5 calls, saw {calls}");
    ensure!(!errors(&host, NOT_ROUTED, "m")?.is_empty(), "no error was logged");
    sleep(Duration::from_secs(10)).await;
    same("calls after ten more seconds", host.calls.len(), calls)?;
    host.stop().await?;
    without_metadata(&channel).await?;
    Ok(Present)
}

/// A server that fails to move a message which is beyond its limit: the calls end, the message stays where it is.
async fn ends_unmoved(channel: &Channel, host: &Host) -> Result<Shown> {
    host.called("m", 4).await?;
    sleep(Duration::from_secs(3)).await;
    let calls = host.calls.len();
    ensure!(calls <= 5, "expected 4 or 5 calls, saw {calls}");
    ensure!(!errors(host, NOT_ROUTED, "m")?.is_empty(), "no error was logged");
    sleep(Duration::from_secs(10)).await;
    same("calls after ten more seconds", host.calls.len(), calls)?;
    same("messages that the server moved", channel.depth(Place::Native).await?, 0)?;
    same("messages at the source", channel.depth(Place::Source).await?, 1)?;
    host.stop().await?;
    Ok(Absent)
}

async fn without_metadata(channel: &Channel) -> Result<()> {
    let copy = channel.copy(Place::Native).await?;
    let named = names::RESERVED.iter().find(|name| copy.message.headers.get(name).is_some());
    same("metadata on what the broker moved", named, None)
}

/// Without a limit of the broker's own the calls end at C-17's count, and the message waits for its destination.
async fn guard_ends_the_calls(bench: &Bench, channel: &Channel, setup: Setup) -> Result<Shown> {
    let host = channel.host(setup.with_backoff(Duration::from_millis(20))).await?;
    channel.send("m", defer()).await?;
    until("it came twice more without a call", || {
        host.lines(Level::ERROR, NOT_ROUTED).len() >= 6 && host.notes.count("Turned") >= 2
    })
    .await?;
    handled_within(&host, "m", 6)?;
    let counts = host.calls.counts("m");
    rising(&counts)?;
    ensure!(counts.len() > 3, "expected calls beyond the budget of 3, saw {counts:?}");
    let moved = bench.rig().moved(&channel.names).await?;
    same("whether the broker moved it after the group's retry maximum", moved, false)?;
    same("messages at the source", channel.depth(Place::Source).await?, 1)?;
    bench.rig().create_queue(&channel.queue(Place::Missing)).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let copy = channel.copy(Place::Missing).await?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("not handed to the handler"), "the text is {why:?}");
    Ok(Absent)
}

async fn effective_limit(bench: Bench) -> Result<Shown> {
    let limit = bench.configuration().native_limit(3);
    let channel = bench.channel_with(Wants { native: Some(limit), ..Wants::default() }).await?;
    let host = channel.host(Setup::budget(10)).await?;
    channel.send("m", defer()).await?;
    if !bench.configuration().has_native_limit() {
        return budget_alone(&bench, &channel, &host, limit).await;
    }
    let moves = bench.configuration().native_moves();
    if moves {
        channel.holds(Place::Native, 1).await?;
    } else {
        host.called("m", 3).await?;
    }
    // Time for deliveries that should not be.
    sleep(Duration::from_secs(if moves { 2 } else { 5 })).await;
    host.stop().await?;
    let calls = host.calls.len();
    let most = usize::try_from(limit)?;
    ensure!((1..=most).contains(&calls), "expected 1 to {most} calls, saw {calls}");
    same("copies of the host's", channel.depth(Place::DeadLetter).await?, 0)?;
    same("the broker's limit afterwards", channel.facts().await?.native_limit, Some(limit))?;
    let other = bench.channel_with(Wants { uncounted: true, ..Wants::default() }).await?;
    other.host(Setup::budget(10)).await?.stop().await?;
    same("a limit that nobody asked for", other.facts().await?.native_limit, None)?;
    if !moves {
        same("messages that the server moved", channel.depth(Place::Native).await?, 0)?;
        return Ok(Absent);
    }
    without_metadata(&channel).await?;
    Ok(Present)
}

/// The broker keeps no limit: a budget beyond the group's own retry maximum is spent to its end.
async fn budget_alone(bench: &Bench, channel: &Channel, host: &Host, limit: u32) -> Result<Shown> {
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    handled_within(host, "m", 10)?;
    let counts = host.calls.counts("m");
    rising(&counts)?;
    let beyond = counts.last().is_some_and(|count| *count >= limit);
    ensure!(beyond, "expected calls beyond {limit} deliveries, saw {counts:?}");
    let moved = bench.rig().moved(&channel.names).await?;
    same("whether the broker moved it after the group's retry maximum", moved, false)?;
    let reason = channel.copy(Place::DeadLetter).await?;
    same("the reason", metadata(&reason, names::REJECTION_REASON), "DeliveryError")?;
    Ok(Absent)
}
