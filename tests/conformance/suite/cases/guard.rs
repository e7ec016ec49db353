//! C-17: a message whose deliveries keep ending without an outcome.

use anyhow::{Result, ensure};
use pumphouse_contract::copy::names;

use super::{Absent, Case, Present, Shown, ack, case, defer, handled_within, metadata, reject};
use crate::bench::{Bench, Channel, both, same};
use crate::host::{Host, Setup};
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-17",
        "guard",
        guard,
        "from max(2R, R + 3) on it is routed without a call, and handed over below"
    ),
    case!("C-17", "copies", copies, "never applied to a rejected copy"),
    case!(
        "C-17",
        "own rejection",
        own_rejection,
        "a rejection still unpublished at that count becomes a delivery-error"
    ),
    case!(
        "C-17",
        "undecodable",
        undecodable,
        "what can't be decoded stays unacceptable at any count"
    ),
];

/// With a budget of 1 the guard stands at 4.
async fn guard(bench: Bench) -> Result<Shown> {
    let beyond = async || -> Result<()> {
        let channel = bench.channel().await?;
        channel.send("m", ack()).await?;
        channel.deliver_in_vain(Place::Source, 4).await?;
        let host = channel.host(Setup::budget(1)).await?;
        if !bench.configuration().has_guard() {
            host.acked("m").await?;
            channel.holds(Place::Source, 0).await?;
            host.stop().await?;
            let counts = host.calls.counts("m");
            ensure!(counts.iter().all(|count| *count >= 4), "handed over at {counts:?}");
            return Ok(());
        }
        channel.holds(Place::DeadLetter, 1).await?;
        channel.holds(Place::Source, 0).await?;
        host.stop().await?;
        same("calls", host.calls.len(), 0)?;
        let copy = channel.copy(Place::DeadLetter).await?;
        same("the reason", metadata(&copy, names::REJECTION_REASON), "DeliveryError")?;
        let why = metadata(&copy, names::REJECTION_MESSAGE);
        ensure!(why.contains("not handed to the handler: delivery"), "the text is {why:?}");
        Ok(())
    };
    let below = async || -> Result<()> {
        let channel = bench.channel().await?;
        channel.send("m", ack()).await?;
        channel.deliver_in_vain(Place::Source, 3).await?;
        let host = channel.host(Setup::budget(1)).await?;
        host.acked("m").await?;
        channel.holds(Place::Source, 0).await?;
        host.stop().await?;
        same("the count", host.calls.counts("m"), vec![3])
    };
    both(beyond(), below()).await?;
    Ok(if bench.configuration().has_guard() { Present } else { Absent })
}

async fn copies(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::budget(1)).await?;
    channel.send("m", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    host.stop().await?;
    channel.deliver_in_vain(Place::DeadLetter, 6).await?;
    let setup = Setup {
        reads: Place::DeadLetter,
        dead_letter: Some(Place::Invalid),
        invalid_message: None,
        ..Setup::budget(1)
    };
    let reader = channel.host(setup).await?;
    channel.holds(Place::Invalid, 1).await?;
    reader.stop().await?;
    same("the counts", reader.calls.counts("m"), vec![1])?;
    Ok(Present)
}

async fn own_rejection(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let setup = Setup { invalid_message: Some(Place::Missing), ..Setup::budget(1) };
    let host = channel.host(setup).await?;
    channel.send("m", reject("unacceptable")).await?;
    if !bench.configuration().has_guard() {
        return stays_unacceptable(&bench, &channel, &host).await;
    }
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    handled_within(&host, "m", 4)?;
    let copy = channel.copy(Place::DeadLetter).await?;
    same("the reason", metadata(&copy, names::REJECTION_REASON), "DeliveryError")?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("not handed to the handler"), "the text is {why:?}");
    Ok(Present)
}

/// Without the guard the message keeps its reason, and waits for its destination at any count.
async fn stays_unacceptable(bench: &Bench, channel: &Channel, host: &Host) -> Result<Shown> {
    host.called("m", 6).await?;
    same("copies", channel.depth(Place::DeadLetter).await?, 0)?;
    let missing = channel.queue(Place::Missing);
    bench.rig().create_queue(&missing).await?;
    channel.holds(Place::Missing, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let copy = channel.copy(Place::Missing).await?;
    same("the reason", metadata(&copy, names::REJECTION_REASON), "Unacceptable")?;
    Ok(Absent)
}

async fn undecodable(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    channel.send_undecodable("m").await?;
    channel.deliver_in_vain(Place::Source, 4).await?;
    let host = channel.host(Setup::budget(1)).await?;
    if bench.configuration().decodes_everything() {
        // This is an ordinary header there: the guard alone speaks, or where it is silent the handler gets the body.
        let guarded = bench.configuration().has_guard();
        channel.holds(Place::Source, 0).await?;
        host.stop().await?;
        same("calls", host.calls.len(), usize::from(!guarded))?;
        let copies = channel.depth(Place::DeadLetter).await?;
        same("copies of the guard's", copies, u64::from(guarded))?;
        return Ok(Absent);
    }
    channel.holds(Place::Invalid, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("calls", host.calls.len(), 0)?;
    let copy = channel.copy(Place::Invalid).await?;
    same("the reason", metadata(&copy, names::REJECTION_REASON), "Unacceptable")?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("could not be decoded"), "the text is {why:?}");
    Ok(Present)
}
