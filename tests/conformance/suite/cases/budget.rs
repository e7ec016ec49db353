//! C-4, C-5: the budget.

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use pumphouse_contract::Reason;
use pumphouse_contract::copy::names;

use super::{Case, Present, Shown, case, defer, defers, handled_within, is_exact, metadata};
use crate::bench::{Bench, same};
use crate::host::Setup;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-4",
        "",
        spends,
        "a handler that always defers is called R times (exact), 1 to R (approximate), never again"
    ),
    case!("C-5", "unlimited", unlimited, "−1 never consults the budget"),
    case!(
        "C-5",
        "at once",
        at_once,
        "1, 0 and −5 reject on the first deferral, without a requeue call"
    ),
];

async fn spends(bench: Bench) -> Result<Shown> {
    try_join_all([1, 2, 3].map(|budget| spend(&bench, budget))).await?;
    Ok(Present)
}

async fn spend(bench: &Bench, budget: u32) -> Result<()> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(budget.into())).await?;
    channel.send("m", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    handled_within(&host, "m", usize::try_from(budget)?)?;
    let copy = channel.copy(Place::DeadLetter).await?;
    let reason = metadata(&copy, names::REJECTION_REASON);
    same("the reason", reason, Reason::DeliveryError.on_the_wire())?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    let fired = if is_exact(&host) {
        format!("delivery {budget} of {budget} was deferred")
    } else {
        format!("of {budget} was deferred")
    };
    ensure!(why.contains(&fired), "the copy must say {fired:?}, and says {why:?}");
    Ok(())
}

async fn unlimited(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(-1)).await?;
    channel.send("m", defers(8)).await?;
    host.acked("m").await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    if is_exact(&host) {
        same("calls", host.calls.len(), 9)?;
    }
    same("routed", host.notes.count("Routed"), 0)?;
    same("copies", channel.depth(Place::DeadLetter).await?, 0)?;
    Ok(Present)
}

async fn at_once(bench: Bench) -> Result<Shown> {
    try_join_all([1, 0, -5].map(|budget| reject_at_once(&bench, budget))).await?;
    if let Some((calls, operations)) = bench.rig().calls().zip(bench.rig().operations()) {
        let released = calls.contains_key(operations.release);
        ensure!(!released, "no requeue call may be made, saw {calls:?}");
    }
    Ok(Present)
}

async fn reject_at_once(bench: &Bench, budget: i64) -> Result<()> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(budget)).await?;
    channel.send("m", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same(&format!("calls under a budget of {budget}"), host.calls.len(), 1)?;
    same("releases", host.tap.releases("m"), vec![])?;
    Ok(())
}
