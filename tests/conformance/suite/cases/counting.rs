//! C-1, C-2, C-3, C-8: the broker counts, and the host passes the number on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use pumphouse_contract::copy::names;
use pumphouse_contract::ports::Counter;
use pumphouse_contract::{Budget, Counted};
use tracing::Level;

use super::rejecting::ROUTED;
use super::{
    Absent, Case, Present, Shown, ack, case, defer, defer_ms, defers, is_exact, metadata, rising,
    steps,
};
use crate::bench::{Bench, Channel, same};
use crate::cases::findings;
use crate::host::{Host, Setup};
use crate::rows::{Place, Wants};

pub(super) const CASES: &[Case] = &[
    case!("C-1", "release", release, "a released message presents a higher count"),
    case!("C-1", "lapse", lapse, "so does one whose lease lapsed, without any settlement call"),
    case!("C-1", "restart", restart, "the count survives a restart of the host"),
    case!("C-1", "competing", competing, "the count goes up over competing hosts"),
    case!("C-2", "", first, "a first delivery presents 0"),
    case!(
        "C-2",
        "lost answer",
        lost_answer,
        "a receive whose answer is lost is counted: the residual risk"
    ),
    case!(
        "C-3",
        "",
        nth,
        "the n-th delivery presents n − 1 (exact), or at least that (approximate)"
    ),
    case!(
        "C-8",
        "",
        advances,
        "where no count advances, F-3 names it and the window holds; elsewhere it does advance"
    ),
];

async fn handled_to_its_end(channel: &Channel, host: &Host, tag: &str) -> Result<()> {
    host.acked(tag).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await
}

async fn release(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send("m", defers(3)).await?;
    handled_to_its_end(&channel, &host, "m").await?;
    let counts = host.calls.counts("m");
    rising(&counts)?;
    ensure!(counts.len() > 1, "it was released and not delivered again: {counts:?}");
    Ok(Present)
}

/// The settlements go no further than the pump, so that the lease alone brings the message back.
async fn lapse(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let host = channel.host(Setup { short_lease: true, ..Setup::default() }).await?;
    host.tap.script.swallow.store(usize::MAX, Ordering::SeqCst);
    if bench.configuration().withholds_lapsed() {
        channel.send_without_key("m", ack()).await?;
    } else {
        channel.send("m", ack()).await?;
    }
    // One lapse is enough where it takes long.
    let brief = bench.configuration().shortest_lease() <= Duration::from_secs(10);
    host.called("m", if brief { 3 } else { 2 }).await?;
    if let Some((calls, operations)) = bench.rig().calls().zip(bench.rig().operations()) {
        let settles = |name: &&str| calls.contains_key(*name);
        let settling: Vec<_> =
            [operations.ack, operations.release].into_iter().filter(settles).collect();
        ensure!(settling.is_empty(), "a host that settles nothing called {settling:?}");
    }
    host.tap.script.swallow.store(0, Ordering::SeqCst);
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    rising(&host.calls.counts("m"))?;
    Ok(Present)
}

async fn restart(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let setup = Setup::default();
    let first = channel.host(setup.clone()).await?;
    channel.send("m", steps([defer_ms(1_000), ack()])).await?;
    first.called("m", 1).await?;
    first.stop().await?;
    bench.rig().restart().await?;
    let second = channel.host(setup).await?;
    handled_to_its_end(&channel, &second, "m").await?;
    let counts = second.calls.counts("m");
    rising(&counts)?;
    ensure!(counts.len() > 1, "only {counts:?} over two hosts");
    Ok(Present)
}

async fn competing(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let setup = Setup::default();
    let one = channel.host(setup.clone()).await?;
    let other = channel.host(setup).await?;
    let tags: Vec<String> = (0..6).map(|number| format!("m{number}")).collect();
    for tag in &tags {
        channel.send(tag, defers(2)).await?;
    }
    for tag in &tags {
        one.acked(tag).await?;
    }
    channel.holds(Place::Source, 0).await?;
    one.stop().await?;
    other.stop().await?;
    for tag in &tags {
        let counts = one.calls.counts(tag);
        rising(&counts)?;
        if is_exact(&one) {
            same(&format!("counts of {tag}"), counts, vec![0, 1, 2])?;
        }
    }
    Ok(Present)
}

async fn first(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let tags: Vec<String> = (0..5).map(|number| format!("m{number}")).collect();
    for tag in &tags {
        channel.send(tag, ack()).await?;
    }
    for tag in &tags {
        host.acked(tag).await?;
    }
    host.stop().await?;
    for tag in &tags {
        // A count above 0 here would be a receive whose answer was lost: reported, and never tried again.
        same(&format!("counts of {tag}"), host.calls.counts(tag), vec![0])?;
    }
    Ok(Present)
}

async fn lost_answer(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let host = channel.host(Setup { short_lease: true, ..Setup::default() }).await?;
    host.loses_an_answer();
    channel.send("m", ack()).await?;
    handled_to_its_end(&channel, &host, "m").await?;
    let counts = host.calls.counts("m");
    let first = counts.first().copied().unwrap_or_default();
    ensure!(first >= 1, "the broker did not count the delivery that was lost: {counts:?}");
    Ok(Present)
}

async fn nth(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send("m", defers(4)).await?;
    handled_to_its_end(&channel, &host, "m").await?;
    let counts = host.calls.counts("m");
    if is_exact(&host) {
        same("counts", counts, vec![0, 1, 2, 3, 4])?;
    } else {
        let least = counts.iter().zip(0..).all(|(count, n)| *count >= n);
        ensure!(least, "the n-th call must present at least n − 1, saw {counts:?}");
    }
    for delivery in host.tap.deliveries() {
        let honest = match host.capabilities().counter {
            Counter::Exact => matches!(delivery.counted, Counted::Exact(_)),
            Counter::Approximate => matches!(delivery.counted, Counted::AtLeast(_)),
        };
        ensure!(honest, "the type of the count is not the class that is claimed: {delivery:?}");
    }
    Ok(Present)
}

async fn advances(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    ensure!(host.capabilities().count_advances, "a source of this row counts");
    channel.send("m", defers(2)).await?;
    handled_to_its_end(&channel, &host, "m").await?;
    rising(&host.calls.counts("m"))?;
    let mut facts = findings::facts(&channel).await?;
    facts.budget = Budget::Deliveries(3);
    let said = pumphouse_contract::findings::budget_unenforceable(&facts, &[]);
    same("what F-3 says", said, None)?;
    if bench.configuration().is_pubsub() {
        return stands_still(&bench).await;
    }
    Ok(Absent)
}

/// A subscription without a dead-letter policy: every delivery presents 0, a budget above 1 is not reached, and the
/// window still is.
async fn stands_still(bench: &Bench) -> Result<Shown> {
    let wants = Wants { uncounted: true, ..Wants::default() };
    let channel = bench.channel_with(wants).await?;
    let window = Some(Duration::from_secs(3));
    let host = channel.host(Setup { window, ..Setup::budget(2) }).await?;
    ensure!(!host.capabilities().count_advances, "a count that stands still must be said");
    channel.send("m", defer_ms(500)).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let counts = host.calls.counts("m");
    ensure!(counts.len() > 2, "a budget of 2 can't be kept here, saw {counts:?}");
    ensure!(counts.iter().all(|count| *count == 0), "nothing counts here, saw {counts:?}");
    let copy = channel.copy(Place::DeadLetter).await?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("retry.window is over"), "the text is {why:?}");
    let mut lines = host.logs();
    lines.retain(|line| line.message != ROUTED && line.level <= Level::INFO);
    ensure!(lines.len() <= 1, "expected one line at most, for the start, saw {lines:?}");
    at_once_all_the_same(&channel).await?;
    let mut facts = findings::facts(&channel).await?;
    facts.count_stands_still = Some("it has no dead-letter policy".to_owned());
    let said = pumphouse_contract::findings::budget_unenforceable(&facts, &[]);
    let said = said.unwrap_or_default();
    ensure!(said.contains("it has no dead-letter policy"), "F-3 says {said:?}");
    Ok(Present)
}

/// A budget of 1 is kept also where nothing counts (C-5).
async fn at_once_all_the_same(channel: &Channel) -> Result<()> {
    let host = channel.host(Setup::budget(1)).await?;
    channel.send("once", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("calls under a budget of 1", host.calls.counts("once"), vec![0])
}
