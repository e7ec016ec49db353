//! S-6: order within a key, over redeliveries.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::ports::Ordering;

use super::{Absent, Case, Present, Shown, ack, case, defer, defer_ms, steps};
use crate::bench::{Bench, same};
use crate::host::{Host, Setup};
use crate::recorder::Call;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "S-6",
        "",
        keeps_order,
        "no message of a key overtakes another, redeliveries included; without order none waits"
    ),
    case!("S-6", "others go on", others_go_on, "a deferred head stops its own key alone"),
];

/// Three keys of four messages; each third message is deferred once, each fourth twice.
async fn keeps_order(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let keys = ["a", "b", "c"];
    for number in 0..4 {
        for (at, key) in keys.iter().enumerate() {
            let command = match (number + at) % 4 {
                2 => steps([defer_ms(0), ack()]),
                3 => steps([defer(), defer(), ack()]),
                _ => ack(),
            };
            channel.send_keyed(key, &format!("{key}{number}"), command).await?;
        }
    }
    for tag in keys.iter().flat_map(|key| (0..4).map(move |number| format!("{key}{number}"))) {
        host.acked(&tag).await?;
    }
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    if host.capabilities().ordering == Ordering::None {
        return unordered(&bench).await;
    }
    for key in keys {
        in_order(&host, key)?;
    }
    Ok(Present)
}

/// Every call of a key began after the one before had ended, and none went back.
fn in_order(host: &Host, key: &str) -> Result<()> {
    let mut calls = host.calls.all();
    calls.retain(|call| call.tag.starts_with(key));
    let seen: Vec<&str> = calls.iter().map(|call| call.tag.as_str()).collect();
    ensure!(seen.is_sorted(), "a message of {key} overtook another: {seen:?}");
    let after = |(one, next): (&Call, &Call)| {
        one.ended.as_ref().is_some_and(|(ended, _)| *ended <= next.began)
    };
    ensure!(
        calls.iter().zip(calls.iter().skip(1)).all(after),
        "two of {key} ran at once: {seen:?}"
    );
    Ok(())
}

/// A deferred message holds up nobody.
async fn unordered(bench: &Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    channel.send_keyed("k", "head", steps([defer_ms(3_000), ack()])).await?;
    host.called("head", 1).await?;
    channel.send_keyed("k", "next", ack()).await?;
    host.acked("next").await?;
    same("calls for the head meanwhile", host.calls.counts("head").len(), 1)?;
    host.acked("head").await?;
    host.stop().await?;
    Ok(Absent)
}

async fn others_go_on(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let delay = Duration::from_secs(3);
    let away = u64::try_from(delay.as_millis())?;
    channel.send_keyed("a", "a0", steps([defer_ms(away), ack()])).await?;
    channel.send_keyed("a", "a1", ack()).await?;
    host.called("a0", 1).await?;
    channel.send_keyed("b", "b0", ack()).await?;
    for tag in ["b0", "a0", "a1"] {
        host.acked(tag).await?;
    }
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let began =
        |tag: &str| -> Result<_> { Ok(host.calls.of(tag).last().context("not handled")?.began) };
    ensure!(began("b0")? < began("a0")?, "another key waited for the head of this one");
    if host.capabilities().ordering == Ordering::None {
        ensure!(began("a1")? < began("a0")?, "a source without order held a message up");
        return Ok(Absent);
    }
    in_order(&host, "a")?;
    Ok(Present)
}
