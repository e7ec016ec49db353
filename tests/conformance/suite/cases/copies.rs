//! C-7: rejected copies, and what looks like one.

use anyhow::{Result, ensure};
use pumphouse_contract::copy::names;
use pumphouse_contract::{Headers, Outgoing};
use serde_json::json;

use super::{Absent, Case, Present, Shown, case, defer, metadata, rising, steps};
use crate::bench::{Bench, Channel, same};
use crate::host::Setup;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "C-7",
        "kept",
        kept,
        "a copy keeps its stamped count however often its destination is read"
    ),
    case!(
        "C-7",
        "put back",
        put_back,
        "a copy is called once and rejected at its first deferral, the text saying why"
    ),
    case!(
        "C-7",
        "elsewhere",
        elsewhere,
        "elsewhere a copy's names are ordinary headers, and no count is taken from them"
    ),
    case!("C-7", "foreign", foreign, "a foreign client finds the metadata, plain or packed"),
];

/// A copy at the dead-letter destination, stamped with one delivery.
async fn copied(channel: &Channel) -> Result<()> {
    let host = channel.host(Setup::budget(1)).await?;
    channel.send("m", defer()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await
}

fn reading(budget: i64) -> Setup {
    Setup {
        reads: Place::DeadLetter,
        dead_letter: Some(Place::Invalid),
        invalid_message: None,
        ..Setup::budget(budget)
    }
}

async fn kept(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    copied(&channel).await?;
    let reader = channel.host(reading(9)).await?;
    reader.called("m", 3).await?;
    reader.stop().await?;
    let counts = reader.calls.counts("m");
    ensure!(counts.iter().all(|count| *count == 1), "the stamped count is 1, saw {counts:?}");
    let own: Vec<u32> =
        reader.tap.deliveries().iter().map(|delivery| delivery.counted.count().0).collect();
    rising(&own)?;
    Ok(Present)
}

async fn put_back(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    copied(&channel).await?;
    let reader = channel.host(reading(2)).await?;
    channel.holds(Place::Invalid, 1).await?;
    channel.holds(Place::DeadLetter, 0).await?;
    reader.stop().await?;
    same("the counts", reader.calls.counts("m"), vec![1])?;
    let copy = channel.copy(Place::Invalid).await?;
    let why = metadata(&copy, names::REJECTION_MESSAGE);
    ensure!(why.contains("stamped in this rejected copy"), "the text is {why:?}");
    same("the new stamp", metadata(&copy, names::DELIVERY_COUNT), "2")?;
    Ok(Present)
}

/// Plain, and packed in the attribute that copies on SQS have.
async fn elsewhere(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let packed = json!({ "rejectionReason": "DeliveryError", "deliveryCount": "7" }).to_string();
    let headers: Headers = [
        (names::REJECTION_REASON, "DeliveryError"),
        (names::DELIVERY_COUNT, "7"),
        ("pumphouse", packed.as_str()),
        ("googclient_deliveryattempt", "9"),
    ]
    .into_iter()
    .collect();
    let last = json!({ "do": "reject", "reason": "unacceptable", "text": "ours" });
    let mut body = steps([defer(), last]);
    if let Some(body) = body.as_object_mut() {
        body.insert("tag".into(), "m".into());
    }
    channel
        .send_message(Outgoing {
            headers,
            ordering_key: Some("m".into()),
            body: body.to_string().into(),
            ..Outgoing::default()
        })
        .await?;
    channel.holds(Place::Invalid, 1).await?;
    host.stop().await?;
    let counts = host.calls.counts("m");
    same("the first count", counts.first(), Some(&0))?;
    rising(&counts)?;
    for call in host.calls.all() {
        let shown = call.message.headers.text(names::DELIVERY_COUNT);
        same("the header, as any other", shown, Some("7"))?;
    }
    let copy = channel.copy(Place::Invalid).await?;
    same("the copy's reason", metadata(&copy, names::REJECTION_REASON), "Unacceptable")?;
    let injected = copy.message.headers.get("googclient_deliveryattempt");
    same("a counter that some broker's client had put there", injected, None)?;
    let deliveries = counts.last().map(|count| (count + 1).to_string());
    same("the copy's stamp", Some(metadata(&copy, names::DELIVERY_COUNT)), deliveries.as_deref())?;
    Ok(Present)
}

async fn foreign(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    copied(&channel).await?;
    let Some(seen) = bench.rig().foreign(&channel.queue(Place::DeadLetter)).await? else {
        // No other client can open it: the queue is read as an ordinary source, and nothing is hidden there.
        let reader = channel.host(Setup { budget: -1, ..reading(-1) }).await?;
        reader.called("m", 2).await?;
        reader.stop().await?;
        let call = reader.calls.of("m").remove(0);
        let reason = call.message.headers.text(names::REJECTION_REASON);
        same("the reason", reason, Some("DeliveryError"))?;
        return Ok(Absent);
    };
    same("the reason", seen.metadata(names::REJECTION_REASON), "DeliveryError")?;
    same("the stamp", seen.metadata(names::DELIVERY_COUNT), "1")?;
    same("the source", seen.metadata(names::ORIGINAL_TOPIC), &channel.queue(Place::Source))?;
    let mut sent = defer();
    if let Some(sent) = sent.as_object_mut() {
        sent.insert("tag".into(), "m".into());
    }
    same("the body", seen.body.as_str(), sent.to_string().as_str())?;
    Ok(Present)
}
