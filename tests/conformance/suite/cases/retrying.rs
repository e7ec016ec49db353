//! S-2, S-3, S-4: backoff, delays, the window, and the three failures.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pumphouse_contract::copy::names;
use pumphouse_contract::{Backoff, Jitter};
use tokio::time::sleep;
use tracing::Level;

use super::{Case, Present, Shown, ack, case, defer, defer_ms, defers, metadata, reject, steps};
use crate::bench::{Bench, both, same, until};
use crate::host::{Host, Setup};
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "S-2",
        "backoff",
        backoff,
        "a deferral waits for the backoff: doubling from the count, kept by the broker"
    ),
    case!("S-2", "jitter", jitter, "full jitter spreads it below the schedule"),
    case!("S-2", "own delay", own_delay, "a guest's own delay is kept"),
    case!(
        "S-2",
        "too long",
        too_long,
        "a delay beyond the broker's is shortened, counted, and said once"
    ),
    case!("S-3", "window", window, "past the window a deferral becomes a delivery-error"),
    case!("S-3", "first wins", first_wins, "of budget and window the first that is reached wins"),
    case!(
        "S-3",
        "handed over",
        handed_over,
        "a message older than the window is handed over all the same"
    ),
    case!(
        "S-4",
        "",
        three_failures,
        "unacceptable, transient and permanent failures stay distinct"
    ),
];

/// The time between a message's calls.
fn gaps(host: &Host, tag: &str) -> Vec<Duration> {
    let calls = host.calls.of(tag);
    let ended = |at: usize| -> Option<Instant> { Some(calls.get(at)?.ended.as_ref()?.0) };
    let gap = |(at, next): (usize, &crate::recorder::Call)| Some(next.began - ended(at)?);
    calls.iter().skip(1).enumerate().filter_map(gap).collect()
}

fn not_shorter(gaps: &[Duration], delays: &[Duration]) -> Result<()> {
    // Brokers measure with clocks of their own.
    let early = Duration::from_millis(250);
    let kept = gaps.iter().zip(delays).all(|(gap, delay)| *gap + early >= *delay);
    ensure!(kept && gaps.len() == delays.len(), "expected delays {delays:?}, saw {gaps:?}");
    Ok(())
}

async fn backoff(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let second = Duration::from_secs(1);
    let host = channel.host(Setup::default().with_backoff(second)).await?;
    channel.send("m", defers(2)).await?;
    host.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let delays = [second, second * 2];
    same("the releases", host.tap.releases("m"), delays.to_vec())?;
    not_shorter(&gaps(&host, "m"), &delays)?;
    Ok(Present)
}

async fn jitter(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let base = Duration::from_secs(1);
    let backoff = Backoff { base, max: base, jitter: Jitter::Full };
    let host = channel.host(Setup { backoff, ..Setup::default() }).await?;
    let tags: Vec<String> = (0..6).map(|number| format!("m{number}")).collect();
    for tag in &tags {
        channel.send(tag, defers(1)).await?;
    }
    for tag in &tags {
        host.acked(tag).await?;
    }
    host.stop().await?;
    let mut releases: Vec<_> = tags.iter().flat_map(|tag| host.tap.releases(tag)).collect();
    ensure!(releases.iter().all(|release| *release <= base), "beyond the schedule: {releases:?}");
    releases.sort();
    releases.dedup();
    ensure!(releases.len() > 1, "six releases are the same to the nanosecond: {releases:?}");
    Ok(Present)
}

async fn own_delay(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send("m", steps([defer_ms(1_500), ack()])).await?;
    host.acked("m").await?;
    host.stop().await?;
    let delay = Duration::from_millis(1_500);
    same("the releases", host.tap.releases("m"), vec![delay])?;
    not_shorter(&gaps(&host, "m"), &[delay])?;
    Ok(Present)
}

async fn too_long(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let years = 10 * 365 * 24 * 3_600 * 1_000;
    channel.send("m0", defer_ms(years)).await?;
    channel.send("m1", defer_ms(years)).await?;
    host.noted("Settled", 2).await?;
    host.stop().await?;
    same("events", host.notes.count("DelayShortened"), 2)?;
    let said = "a handler asked for a longer delay than the broker gives; it is shortened";
    same("lines", host.lines(Level::WARN, said).len(), 1)?;
    let longest = host.capabilities().longest_delay;
    for tag in ["m0", "m1"] {
        let releases = host.tap.releases(tag);
        let release = releases.first().context("not released")?;
        let close = *release <= longest && *release + Duration::from_secs(120) > longest;
        ensure!(close && releases.len() == 1, "expected about {longest:?}, saw {releases:?}");
    }
    channel.holds(Place::Source, 2).await?;
    Ok(Present)
}

async fn window(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let window = Some(Duration::from_secs(2));
    let host = channel.host(Setup { window, ..Setup::default() }).await?;
    let sent = Instant::now();
    channel.send("m", defer_ms(700)).await?;
    host.called("m", 1).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let copy = channel.copy(Place::DeadLetter).await?;
    same("the reason", metadata(&copy, names::REJECTION_REASON), "DeliveryError")?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("retry.window is over"), "the text is {why:?}");
    let calls = host.calls.of("m");
    let (first, last) = calls.first().zip(calls.last()).context("not handled")?;
    // Where no time of a first delivery is carried, the window begins with the publish.
    let carried = host.tap.deliveries().iter().all(|one| one.first_received_at.is_some());
    let from = if carried { first.began } else { sent };
    let lived = last.began - from + Duration::from_millis(500);
    ensure!(lived >= Duration::from_secs(2), "rejected {lived:?} after its window began");
    Ok(Present)
}

async fn first_wins(bench: Bench) -> Result<Shown> {
    let rejected_by = async |budget: i64, window: u64| -> Result<String> {
        let channel = bench.channel().await?;
        let window = Some(Duration::from_secs(window));
        let host = channel.host(Setup { window, ..Setup::budget(budget) }).await?;
        channel.send("m", defer_ms(500)).await?;
        channel.holds(Place::DeadLetter, 1).await?;
        host.stop().await?;
        let copy = channel.copy(Place::DeadLetter).await?;
        Ok(metadata(&copy, names::REJECTION_MESSAGE).to_owned())
    };
    let (budget, window) = both(rejected_by(2, 3_600), rejected_by(100, 1)).await?;
    ensure!(budget.contains("max_deliveries reached"), "the text is {budget:?}");
    ensure!(window.contains("retry.window is over"), "the text is {window:?}");
    Ok(Present)
}

async fn handed_over(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    channel.send("m", ack()).await?;
    sleep(Duration::from_millis(1_500)).await;
    let window = Some(Duration::from_secs(1));
    let host = channel.host(Setup { window, ..Setup::default() }).await?;
    host.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("copies", channel.depth(Place::DeadLetter).await?, 0)?;
    Ok(Present)
}

async fn three_failures(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(9)).await?;
    channel.send("never", reject("unacceptable")).await?;
    channel.send("failed", reject("delivery-error")).await?;
    channel.send("later", steps([defer(), ack()])).await?;
    if !bench.configuration().decodes_everything() {
        channel.send_undecodable("broken").await?;
        host.noted("Turned", 1).await?;
    }
    host.acked("later").await?;
    for tag in ["never", "failed"] {
        host.called(tag, 1).await?;
    }
    channel.holds(Place::Source, 0).await?;
    until("all are settled", || host.notes.count("Settled") >= host.tap.deliveries().len()).await?;
    host.stop().await?;
    for tag in ["never", "failed"] {
        same(&format!("calls for {tag}"), host.calls.counts(tag).len(), 1)?;
        same("its releases", host.tap.releases(tag), vec![])?;
    }
    let unacceptable = if bench.configuration().decodes_everything() { 1 } else { 2 };
    channel.copies(Place::Invalid, unacceptable).await?;
    channel.copies(Place::DeadLetter, 1).await?;
    Ok(Present)
}
