//! C-10, C-12: where a rejected message goes.

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use pumphouse_contract::copy::names;
use tracing::Level;

use super::failing::NOT_ROUTED;
use super::{Case, Present, Shown, case, metadata, reject};
use crate::bench::{Bench, Channel, same, until};
use crate::host::{Host, Setup};
use crate::recorder::tag;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-10",
        "routing",
        routing,
        "each reason goes where it must, for every choice of destinations"
    ),
    case!(
        "C-10",
        "no stand-in",
        no_stand_in,
        "the dead-letter destination never stands in for a publish that failed"
    ),
    case!(
        "C-12",
        "",
        discarding,
        "without a destination it is removed, with one warning that names id and reason"
    ),
];

const REASONS: [(&str, &str); 3] =
    [("unacceptable", "Unacceptable"), ("delivery-error", "DeliveryError"), ("none", "None")];

pub(super) const ROUTED: &str = "rejected message routed";
const DISCARDED: &str = "rejected message has no destination and is removed";

async fn routing(bench: Bench) -> Result<Shown> {
    let (dead, invalid) = (Some(Place::DeadLetter), Some(Place::Invalid));
    let choices = [(dead, invalid), (dead, None), (None, invalid), (None, None)];
    try_join_all(choices.map(|(dead, invalid)| route(&bench, dead, invalid))).await?;
    Ok(Present)
}

/// Sends a message for each reason, and looks at what is where.
async fn route(bench: &Bench, dead: Option<Place>, invalid: Option<Place>) -> Result<()> {
    let channel = bench.channel().await?;
    let setup = Setup { dead_letter: dead, invalid_message: invalid, ..Setup::budget(5) };
    let host = channel.host(setup).await?;
    reject_each(&channel, &host).await?;
    let to = |reason: &str| if reason == "unacceptable" { invalid.or(dead) } else { dead };
    for place in [Place::DeadLetter, Place::Invalid] {
        let mut expected: Vec<_> =
            REASONS.into_iter().filter(|(reason, _)| to(reason) == Some(place)).collect();
        expected.sort_unstable();
        let copies = channel.copies(place, expected.len()).await?;
        let mut seen: Vec<_> = copies
            .iter()
            .map(|copy| (tag(&copy.message.body), metadata(copy, names::REJECTION_REASON)))
            .collect();
        seen.sort_unstable();
        let seen: Vec<_> = seen.iter().map(|(tag, wire)| (tag.as_str(), *wire)).collect();
        same(&format!("copies at {place:?} with {dead:?} and {invalid:?}"), seen, expected)?;
        for copy in &copies {
            one_line(&host, copy_id(copy), &channel.queue(place))?;
        }
    }
    Ok(())
}

fn copy_id(copy: &pumphouse_contract::Delivery) -> &str {
    metadata(copy, names::ORIGINAL_MESSAGE_ID)
}

/// One line at info for a message that was routed: id, reason, destination, count.
fn one_line(host: &Host, id: &str, destination: &str) -> Result<()> {
    let mut lines = host.lines(Level::INFO, ROUTED);
    lines.retain(|line| line.field("message_id") == id);
    same(&format!("lines about {id}"), lines.len(), 1)?;
    let line = lines.first().context("no line")?;
    same("the destination", line.field("destination"), destination)?;
    same("the count", line.field("count"), "0")?;
    same("a reason", line.has("reason"), true)
}

/// Sends a message for each reason, and waits until all are gone.
async fn reject_each(channel: &Channel, host: &Host) -> Result<()> {
    for (reason, _) in REASONS {
        channel.send(reason, reject(reason)).await?;
    }
    for (reason, _) in REASONS {
        host.called(reason, 1).await?;
    }
    channel.holds(Place::Source, 0).await?;
    host.stop().await
}

async fn no_stand_in(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    host.publishes_fail(Place::Invalid, 2);
    channel.send("m", reject("unacceptable")).await?;
    channel.holds(Place::Invalid, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    same("errors", host.lines(Level::ERROR, NOT_ROUTED).len(), 2)?;
    same("copies at the dead-letter destination", channel.depth(Place::DeadLetter).await?, 0)?;
    Ok(Present)
}

async fn discarding(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let setup = Setup { dead_letter: None, invalid_message: None, ..Setup::default() };
    let host = channel.host(setup).await?;
    reject_each(&channel, &host).await?;
    until("the warnings are there", || host.lines(Level::WARN, DISCARDED).len() >= 3).await?;
    let lines = host.lines(Level::WARN, DISCARDED);
    same("warnings", lines.len(), 3)?;
    for (reason, _) in REASONS {
        let call = host.calls.of(reason).into_iter().next().context("not handled")?;
        let about: Vec<_> =
            lines.iter().filter(|line| line.field("message_id") == call.message.id).collect();
        same(&format!("warnings about {reason}"), about.len(), 1)?;
        same("the reason", about.first().map(|line| line.field("reason")), Some(reason))?;
    }
    Ok(Present)
}
