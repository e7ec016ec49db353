//! C-11: what a copy carries.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use pumphouse_contract::copy::names;
use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Delivery, HeaderValue, Headers, Message, OnFault, Outgoing, Timestamp};
use serde_json::{Value, json};

use super::{Absent, Case, Present, Shown, case, defers, metadata, own_headers};
use crate::bench::{Bench, Channel, both, same};
use crate::host::{Guest, Host, Setup};
use crate::rows::{Place, Wants};

pub(super) const CASES: &[Case] = &[
    case!(
        "C-11",
        "metadata",
        everything,
        "the metadata, the count c + 1, every header and the key"
    ),
    case!("C-11", "body", body, "a body that is no text, byte for byte"),
    case!("C-11", "full", full, "as many headers as the broker takes"),
    case!(
        "C-11",
        "size limit",
        size_limit,
        "a description too long for the destination is shortened and ends in …"
    ),
    case!(
        "C-11",
        "what fired",
        what_fired,
        "a rejection of the host's own says which fault fired, and which count was reached"
    ),
    case!(
        "C-11",
        "two of one body",
        two_of_one_body,
        "equal bodies are two copies: no copy is deduplicated by its body"
    ),
];

/// A message whose handler rejects it so.
fn rejecting(headers: Headers, key: &str, command: &Value) -> Outgoing {
    Outgoing {
        headers,
        ordering_key: Some(key.to_owned()),
        body: command.to_string().into(),
        ..Outgoing::default()
    }
}

/// Headers of every kind that the row has.
fn of_all_kinds(bench: &Bench) -> Headers {
    let text = [
        ("type", HeaderValue::from("order.placed")),
        ("colour", HeaderValue::from("blå, \"quoted\" & <marked>")),
    ];
    let others = [
        ("price", HeaderValue::Number("12.50".into())),
        ("raw", HeaderValue::Binary(Bytes::from_static(b"\x00\x01\xfe\xff"))),
    ];
    let others = others.into_iter().filter(|_| bench.configuration().has_typed_headers());
    text.into_iter().chain(others).collect()
}

async fn everything(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let last = json!({ "do": "reject", "reason": "none", "text": "the text" });
    let mut command = defers(1);
    if let Some(steps) = command.get_mut("steps").and_then(Value::as_array_mut) {
        steps.pop();
        steps.push(last);
    }
    let sent = rejecting(of_all_kinds(&bench), "key-1", &command);
    let began = bench.world().clock.wall();
    channel.send_message(sent.clone()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    host.stop().await?;
    let ended = bench.world().clock.wall();
    let copy = channel.copy(Place::DeadLetter).await?;
    let call = host.calls.all().pop().context("not handled")?;
    same("what the handler got", own_headers(&call.message), own_headers(&wanted(&sent)))?;
    same("the copy's headers", own_headers(&copy.message), own_headers(&wanted(&sent)))?;
    same("the body", &copy.message.body, &sent.body)?;
    if host.capabilities().ordering == Ordering::Key {
        same("the key", copy.message.ordering_key.as_deref(), Some("key-1"))?;
    }
    stamped(&channel, &host, &copy)?;
    let at = metadata(&copy, names::REJECTION_TIMESTAMP);
    let at: jiff::Timestamp = at.parse().with_context(|| format!("{at:?} is no RFC 3339 time"))?;
    let at = Timestamp(u64::try_from(at.as_millisecond())?);
    ensure!(began <= at && at <= ended, "{at:?} is not between {began:?} and {ended:?}");
    Ok(Present)
}

/// The message with the headers that were sent.
fn wanted(sent: &Outgoing) -> Message {
    Message { headers: sent.headers.clone(), ..Message::default() }
}

fn stamped(channel: &Channel, host: &Host, copy: &Delivery) -> Result<()> {
    let call = host.calls.all().pop().context("not handled")?;
    let version = channel.bench.world().steered.begin();
    let digest = version.digest().get(..12).context("a digest is longer")?.to_owned();
    let by = format!("{}/{}@{digest}", host.name, version.name());
    let deliveries = (call.count + 1).to_string();
    let source = channel.queue(Place::Source);
    let expected = [
        (names::ORIGINAL_TOPIC, source.as_str()),
        (names::ORIGINAL_MESSAGE_TYPE, "order.placed"),
        (names::REJECTION_REASON, "None"),
        (names::REJECTION_MESSAGE, "the text"),
        (names::ORIGINAL_MESSAGE_ID, call.message.id.as_str()),
        (names::REJECTED_BY, by.as_str()),
        (names::DELIVERY_COUNT, deliveries.as_str()),
    ];
    for (name, value) in expected {
        same(name, metadata(copy, name), value)?;
    }
    Ok(())
}

async fn body(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup { guest: Guest::TextOnly, ..Setup::default() }).await?;
    let bodies =
        [Bytes::from_static(b"\xff\x00\xfe binary \x80"), (0..=255).collect::<Vec<u8>>().into()];
    for (number, body) in bodies.iter().enumerate() {
        let key = Some(format!("k{number}"));
        let message = Outgoing { ordering_key: key, body: body.clone(), ..Outgoing::default() };
        channel.send_message(message).await?;
    }
    channel.holds(Place::Invalid, 2).await?;
    host.stop().await?;
    let copies = channel.copies(Place::Invalid, 2).await?;
    for body in &bodies {
        let there = copies.iter().any(|copy| copy.message.body == *body);
        ensure!(there, "{body:?} is not among the copies: {copies:?}");
    }
    let handled = host.calls.all().iter().all(|call| bodies.contains(&call.message.body));
    ensure!(handled, "the handler got other bodies than were sent");
    Ok(Present)
}

/// Ten on SQS, where the metadata must be packed to fit; more elsewhere.
async fn full(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let number = bench.configuration().most_headers();
    let headers: Headers =
        (0..number).map(|n| (format!("header-{n:02}"), format!("value {n}"))).collect();
    let command = json!({ "do": "reject", "reason": "unacceptable", "text": "full" });
    let sent = rejecting(headers, "k", &command);
    channel.send_message(sent.clone()).await?;
    channel.holds(Place::Invalid, 1).await?;
    host.stop().await?;
    let copy = channel.copy(Place::Invalid).await?;
    same("the headers", own_headers(&copy.message), own_headers(&wanted(&sent)))?;
    same("the text", metadata(&copy, names::REJECTION_MESSAGE), "full")?;
    Ok(Present)
}

/// The largest message that the embedded broker takes can be rejected, whatever the handler says of it.
async fn largest(bench: &Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let text = "é".repeat(100_000);
    let mut command =
        json!({ "do": "reject", "reason": "delivery-error", "text": text, "pad": "" });
    let key = "k";
    let room = pumphouse_broker::Limits::MEMORY.message_bytes - command.to_string().len() - 1;
    if let Some(pad) = command.get_mut("pad") {
        *pad = "x".repeat(room).into();
    }
    let sent = rejecting(Headers::new(), key, &command);
    channel.send_message(sent.clone()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let copy = channel.copy(Place::DeadLetter).await?;
    same("the body", copy.message.body == sent.body, true)?;
    same("the text", metadata(&copy, names::REJECTION_MESSAGE) == text, true)?;
    Ok(Absent)
}

/// 140 KB of body and as much of description, where the destination takes 200 or 256 KiB, or an attribute 1 KiB.
async fn size_limit(bench: Bench) -> Result<Shown> {
    if bench.configuration().is_embedded() {
        return largest(&bench).await;
    }
    let wants = Wants { dead_letter_bytes: Some(200 * 1024), ..Wants::default() };
    let channel = bench.channel_with(wants).await?;
    let host = channel.host(Setup::default()).await?;
    let text = "é".repeat(70_000);
    let command = json!({ "do": "reject", "reason": "delivery-error", "text": text });
    let sent = rejecting(Headers::new(), "k", &command);
    channel.send_message(sent.clone()).await?;
    channel.holds(Place::DeadLetter, 1).await?;
    host.stop().await?;
    let copy = channel.copy(Place::DeadLetter).await?;
    same("the body", copy.message.body == sent.body, true)?;
    let said = metadata(&copy, names::REJECTION_MESSAGE);
    let short = said.strip_suffix('…').context("a shortened text ends in …")?;
    ensure!(!short.is_empty() && text.starts_with(short), "it is no beginning of the text");
    Ok(Present)
}

async fn two_of_one_body(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    let command = json!({ "do": "reject", "reason": "none", "text": "twice", "tag": "m" });
    for _ in 0..2 {
        channel.send_message(rejecting(Headers::new(), "k", &command)).await?;
    }
    host.called("m", 2).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let copies = channel.copies(Place::DeadLetter, 2).await?;
    let mut ids: Vec<_> =
        copies.iter().map(|copy| metadata(copy, names::ORIGINAL_MESSAGE_ID)).collect();
    ids.sort_unstable();
    ids.dedup();
    same("originals", ids.len(), 2)?;
    Ok(Present)
}

async fn what_fired(bench: Bench) -> Result<Shown> {
    let said = async |on_fault: OnFault| -> Result<String> {
        let channel = bench.channel().await?;
        let host = channel.host(Setup { on_fault, ..Setup::budget(1) }).await?;
        channel.send("m", json!({ "do": "trap", "text": "ouch" })).await?;
        channel.holds(Place::DeadLetter, 1).await?;
        host.stop().await?;
        let copy = channel.copy(Place::DeadLetter).await?;
        same("the reason", metadata(&copy, names::REJECTION_REASON), "DeliveryError")?;
        Ok(metadata(&copy, names::REJECTION_MESSAGE).to_owned())
    };
    let (rejected, deferred) = both(said(OnFault::Reject), said(OnFault::Defer)).await?;
    ensure!(rejected.starts_with("handler fault trap: "), "the text is {rejected:?}");
    let fired = deferred.contains("of 1 was deferred after the fault trap: ");
    ensure!(fired, "the text is {deferred:?}");
    Ok(Present)
}
