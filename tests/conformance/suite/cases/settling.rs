//! C-18, C-19: every delivery ends once, and none is given back that need not have been taken.

use std::collections::HashMap;
use std::sync::atomic::Ordering as Memory;

use anyhow::{Result, ensure};
use pumphouse_contract::Receipt;
use pumphouse_contract::ports::Ordering;
use serde_json::json;

use super::{Absent, Case, Present, Shown, ack, case, defers, is_exact, reject, steps};
use crate::bench::{Bench, same, until};
use crate::cell::Variant;
use crate::host::Setup;
use crate::recorder::Call;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-18",
        "drain",
        drain,
        "a delivery that a drain gives back is counted by the broker, and noted"
    ),
    case!("C-18", "pause", pause, "a busy host does not receive what it could not handle"),
    case!(
        "C-18",
        "one a call",
        one_a_call,
        "an ordered source whose batch may hold followers is asked for one message a call"
    ),
    case!("C-19", "", ends_once, "every delivery ends in one acknowledgement or one release"),
];

async fn drain(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let first = channel.host(Setup::default()).await?;
    first.tap.script.hold.store(true, Memory::SeqCst);
    channel.send("m", ack()).await?;
    until("it was received", || first.tap.script.held.load(Memory::SeqCst) > 0).await?;
    first.drain();
    first.tap.script.hold.store(false, Memory::SeqCst);
    first.stop().await?;
    // A poll that was still waiting may have brought it once more.
    let given_back = first.notes.count("GivenBack");
    same("given back", given_back, first.tap.deliveries().len())?;
    ensure!(given_back > 0, "it was not given back");
    same("calls of the host that drained", first.calls.len(), 0)?;
    let second = channel.host(Setup::default()).await?;
    second.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    second.stop().await?;
    let counts = second.calls.counts("m");
    ensure!(second.capabilities().undispatched_release_counts, "no row of this release differs");
    ensure!(counts.iter().all(|count| *count >= 1), "the release was not counted: {counts:?}");
    if is_exact(&second) {
        same("the count", counts, vec![u32::try_from(given_back)?])?;
    }
    Ok(Present)
}

async fn pause(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let limit = match bench.cell().variant {
        Variant::Sequential => 1,
        Variant::Concurrent => 4,
    };
    let number = limit * 2 + 1;
    for message in 0..number {
        let slow = json!({ "do": "sleep", "ms": 250 });
        channel.send(&format!("m{message}"), slow).await?;
    }
    for message in 0..number {
        host.acked(&format!("m{message}")).await?;
    }
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("given back", host.notes.count("GivenBack"), 0)?;
    same("deliveries", host.tap.deliveries().len(), number)?;
    let most = at_once(&host.calls.all());
    ensure!(most <= limit, "{most} calls at once, where {limit} are the most");
    Ok(Present)
}

/// The most calls that ran at the same time.
fn at_once(calls: &[Call]) -> usize {
    let runs_at = |call: &Call, other: &Call| {
        let ended = call.ended.as_ref().is_none_or(|(ended, _)| *ended > other.began);
        call.began <= other.began && ended
    };
    calls
        .iter()
        .map(|other| calls.iter().filter(|call| runs_at(call, other)).count())
        .max()
        .unwrap_or_default()
}

async fn one_a_call(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    for number in 0..4 {
        channel.send_keyed("k", &format!("m{number}"), ack()).await?;
    }
    let host = channel.host(Setup::default()).await?;
    for number in 0..4 {
        host.acked(&format!("m{number}")).await?;
    }
    host.stop().await?;
    let capabilities = host.capabilities();
    let most = host.tap.asks().iter().map(|ask| ask.max).max().unwrap_or_default();
    if capabilities.batch_may_hold_followers {
        same("the most messages that were asked for", most, 1)?;
        return Ok(Present);
    }
    if bench.cell().variant == Variant::Concurrent {
        ensure!(most > 1, "a batch was never asked for: {most}");
    }
    if capabilities.ordering == Ordering::Key {
        same("messages of each receive", host.tap.batches(), vec![1; 4])?;
    }
    Ok(Absent)
}

async fn ends_once(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(3)).await?;
    let trap = json!({ "do": "trap", "text": "told to" });
    let commands = [
        ("ack", ack()),
        ("twice", defers(1)),
        ("spent", json!({ "do": "defer" })),
        ("trap", steps([trap, ack()])),
        ("unacceptable", reject("unacceptable")),
        ("error", reject("delivery-error")),
        ("none", reject("none")),
    ];
    for (tag, command) in &commands {
        channel.send(tag, command.clone()).await?;
    }
    for (tag, _) in &commands {
        host.called(tag, 1).await?;
    }
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let mut ends: HashMap<Receipt, usize> =
        host.tap.deliveries().into_iter().map(|delivery| (delivery.receipt, 0)).collect();
    for settled in host.tap.settled().into_iter().filter(|one| one.failed.is_none()) {
        *ends.entry(settled.receipt).or_default() += 1;
    }
    let odd: Vec<_> = ends.values().filter(|number| **number != 1).collect();
    ensure!(odd.is_empty(), "deliveries with another number of settlements than one: {odd:?}");
    let deliveries = host.tap.deliveries().len();
    same("settlements that the pump noted", host.notes.count("Settled"), deliveries)?;
    Ok(Present)
}
