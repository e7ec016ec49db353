//! C-6: what reading the count and settling cost.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use pumphouse_contract::copy::{is_routed_copy, stamped_count};
use pumphouse_contract::{Attempt, Delivery, HeaderValue, Headers, Outgoing};
use serde_json::Value;
use tracing::Level;

use super::{
    Absent, Case, Present, Shown, ack, case, defer, defers, own_headers, reject, rising, steps,
};
use crate::allocations;
use crate::bench::{Bench, Channel, same};
use crate::host::{Host, Setup};
use crate::ledger;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-6",
        "own field",
        own_field,
        "a counter attribute inside the message is neither read nor shown, and none is added"
    ),
    case!("C-6", "allocations", allocations_of_reading, "reading the count allocates nothing"),
    case!(
        "C-6",
        "calls",
        calls,
        "no call is made for the count; the calls for each operation are in the table below"
    ),
    case!(
        "C-6",
        "same message",
        same_message,
        "a deferral never republishes: id, time and the broker's count stay"
    ),
    case!("C-6", "quiet", quiet, "no log line for a delivery's count or budget"),
];

async fn own_field(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let headers: Headers = [
        ("ApproximateReceiveCount", HeaderValue::Number("9".into())),
        ("deliveryCount", HeaderValue::Number("7".into())),
        ("own", HeaderValue::Number("5".into())),
    ]
    .into_iter()
    .collect();
    let mut body = defers(1);
    body.as_object_mut().context("a command is an object")?.insert("tag".into(), "m".into());
    channel
        .send_message(Outgoing {
            headers,
            ordering_key: Some("m".into()),
            body: body.to_string().into(),
            ..Outgoing::default()
        })
        .await?;
    host.acked("m").await?;
    host.stop().await?;
    let calls = host.calls.of("m");
    same("the first count", calls.first().map(|call| call.count), Some(0))?;
    rising(&host.calls.counts("m"))?;
    let seen = calls.first().map(|call| {
        let mut names: Vec<_> = call.message.headers.iter().map(|(n, _)| n.to_owned()).collect();
        names.sort();
        names
    });
    same(
        "the headers that the handler got",
        seen,
        Some(vec!["deliveryCount".to_owned(), "own".to_owned()]),
    )?;
    Ok(Present)
}

async fn allocations_of_reading(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send("m", defers(1)).await?;
    host.acked("m").await?;
    host.stop().await?;
    let deliveries = host.tap.deliveries();
    ensure!(deliveries.len() > 1, "expected two deliveries, saw {}", deliveries.len());
    for delivery in &deliveries {
        let read = || {
            let headers = &delivery.message.headers;
            let stamped = is_routed_copy(headers).then(|| stamped_count(headers));
            stamped.unwrap_or_else(|| delivery.counted.count())
        };
        let (count, allocated) = allocations::of(read);
        same(&format!("allocations for count {}", count.0), allocated, 0)?;
    }
    for text in ["1", "2147483647", "", "-3", "many", "99999999999999999999"] {
        let (_, allocated) = allocations::of(|| Attempt::parse(text));
        same(&format!("allocations for the counter {text:?}"), allocated, 0)?;
    }
    let transport = bench.rig().allocations_of_counting()?;
    same("allocations of the transport", transport.unwrap_or_default(), 0)?;
    let (_, control) = allocations::of(|| "counted".to_owned());
    same("allocations that the counting allocator sees in the control", control, 1)?;
    Ok(Present)
}

/// What the host has called so far, without the receives: those that bring nothing don't belong to a message.
fn called(bench: &Bench) -> BTreeMap<String, u64> {
    let mut calls = bench.rig().calls().unwrap_or_default();
    if let Some(operations) = bench.rig().operations() {
        calls.remove(operations.receive);
    }
    calls
}

/// The calls between two looks.
fn between(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> String {
    let more = |(name, count): (&String, &u64)| {
        let made = count - before.get(name).copied().unwrap_or_default();
        (made > 0).then(|| format!("{made} {name}"))
    };
    let made: Vec<String> = after.iter().filter_map(more).collect();
    made.join(", ")
}

async fn calls(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let setup = Setup { budget: 2, dead_letter: Some(Place::DeadLetter), ..Setup::default() };
    let host = channel.host(setup).await?;
    let Some(operations) = bench.rig().operations() else {
        channel.send("m", ack()).await?;
        host.acked("m").await?;
        host.stop().await?;
        return Ok(Absent);
    };
    // What a host calls before its first message, it calls once.
    operation(&bench, &channel, &host, "first", ack()).await?;
    let ack = operation(&bench, &channel, &host, "a", ack()).await?;
    let twice = operation(&bench, &channel, &host, "b", steps([defer(), super::ack()])).await?;
    let rejection = operation(&bench, &channel, &host, "c", reject("delivery-error")).await?;
    host.publishes_fail(Place::DeadLetter, 1);
    let failed = operation(&bench, &channel, &host, "d", reject("delivery-error")).await?;
    host.stop().await?;
    let deliveries = host.tap.batches();
    same("messages of each receive", deliveries, vec![1; 7])?;
    let release = without(&twice, &ack)?;
    let configuration = bench.configuration();
    ledger::measured(configuration, "delivery", operations.delivery)?;
    ledger::measured(configuration, "acknowledgement", &ack)?;
    ledger::measured(configuration, "release", &release)?;
    ledger::measured(configuration, "rejection", &rejection)?;
    let failed = without(&failed, &rejection)?;
    ledger::measured(configuration, "rejection whose publish fails", &failed)?;
    Ok(Present)
}

/// Sends one message, and gives what was called until it was gone.
async fn operation(
    bench: &Bench,
    channel: &Channel,
    host: &Host,
    tag: &str,
    command: Value,
) -> Result<String> {
    let before = called(bench);
    channel.send(tag, command).await?;
    host.called(tag, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.noted("Settled", host.tap.deliveries().len()).await?;
    Ok(between(&before, &called(bench)))
}

/// The calls of the one that the other has not.
fn without(all: &str, part: &str) -> Result<String> {
    let count = |text: &str| -> Result<BTreeMap<String, i64>> {
        let each = text.split(", ").map(|call| {
            let (count, name) = call.split_once(' ').context("calls are a count and a name")?;
            Ok((name.to_owned(), count.parse::<i64>()?))
        });
        each.collect()
    };
    let mut left = count(all)?;
    for (name, number) in count(part)? {
        *left.entry(name).or_default() -= number;
    }
    if left.values().any(|number| *number < 0) {
        bail!("expected {all} to hold {part}");
    }
    let left: Vec<_> = left.into_iter().filter(|(_, number)| *number > 0).collect();
    Ok(left.iter().map(|(name, number)| format!("{number} {name}")).collect::<Vec<_>>().join(", "))
}

async fn same_message(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send("m", defers(3)).await?;
    host.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let deliveries = host.tap.deliveries();
    let first = deliveries.first().context("no delivery")?;
    for delivery in &deliveries {
        same("the message id", &delivery.message.id, &first.message.id)?;
        same("the time", delivery.message.published_at, first.message.published_at)?;
        same("the headers", own_headers(&delivery.message), own_headers(&first.message))?;
        same("the body", &delivery.message.body, &first.message.body)?;
    }
    same_first_receive(&bench, &deliveries)?;
    rising(&host.calls.counts("m"))?;
    let called = bench.rig().calls().unwrap_or_default();
    let published =
        bench.rig().operations().and_then(|operations| called.get(operations.publish).copied());
    same("publishes", published.unwrap_or_default(), 0)?;
    Ok(Present)
}

/// RocketMQ writes it when a message comes back for the first time.
fn same_first_receive(bench: &Bench, deliveries: &[Delivery]) -> Result<()> {
    let untold = usize::from(bench.configuration().is_rocketmq());
    let told = deliveries.iter().skip(untold).map(|one| one.first_received_at);
    let told: BTreeSet<_> = told.collect();
    same(&format!("times of the first receive, {told:?}"), told.len(), 1)
}

async fn quiet(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(9)).await?;
    for number in 0..4 {
        channel.send(&format!("m{number}"), defers(2)).await?;
    }
    for number in 0..4 {
        host.acked(&format!("m{number}")).await?;
    }
    host.stop().await?;
    let lines = host.logs();
    let said: Vec<_> = lines.iter().filter(|line| line.level <= Level::INFO).collect();
    let about = said.iter().find(|line| line.has("count") || line.has("attempt"));
    ensure!(about.is_none(), "a line speaks of a delivery's count: {about:?}");
    ensure!(said.len() <= 1, "expected one line at most, for the start, saw {said:?}");
    Ok(Present)
}
