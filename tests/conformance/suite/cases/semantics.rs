//! S-1, S-7: what a source claims, and what a destination tells of itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pumphouse_contract::ports::{Action, Depth, Settlement, Source};
use tokio::time::sleep;

use super::{Absent, Case, Present, Shown, ack, case, reject};
use crate::bench::{Bench, Channel, ask, both, same, settle, within};
use crate::host::Setup;
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "S-1",
        "at least once",
        at_least_once,
        "every message is handled, also where settlements are lost; some twice"
    ),
    case!(
        "S-1",
        "claims: batches",
        batches,
        "batches, waits and settling in one request are as claimed"
    ),
    case!(
        "S-1",
        "claims: time",
        time,
        "the longest delay is taken, a delay and a lease are kept, the lease is set where it is said"
    ),
    case!("S-7", "", depth, "a destination tells its depth, and its age where the broker knows it"),
];

/// The emulator of Pub/Sub takes some 40 s on an idle machine to push again what a stream did not acknowledge.
const LAPSING: Duration = Duration::from_secs(120);

async fn at_least_once(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let host = channel.host(Setup { short_lease: true, ..Setup::default() }).await?;
    host.tap.script.swallow.store(2, std::sync::atomic::Ordering::SeqCst);
    let tags: Vec<String> = (0..8).map(|number| format!("m{number}")).collect();
    for tag in &tags {
        channel.send(tag, ack()).await?;
    }
    for tag in &tags {
        host.acked(tag).await?;
    }
    within(LAPSING, "the swallowed two began again", || {
        host.notes.count("Began") >= tags.len() + 2
    })
    .await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let twice = tags.iter().filter(|tag| host.calls.counts(tag).len() > 1).count();
    ensure!(twice > 0, "a lost acknowledgement must make a duplicate; exactly-once is not claimed");
    Ok(Present)
}

async fn received(source: &dyn Source, max: usize) -> Result<Vec<pumphouse_contract::Delivery>> {
    let began = Instant::now();
    loop {
        let received = source.receive(ask(max, Duration::from_secs(1))).await?;
        if !received.is_empty() {
            return Ok(received);
        }
        ensure!(began.elapsed() < Duration::from_secs(60), "nothing was received");
    }
}

async fn batches(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let source = channel.source().await?;
    let capabilities = *source.capabilities();
    let began = Instant::now();
    let nothing = source.receive(ask(1, Duration::ZERO)).await?;
    ensure!(nothing.is_empty(), "an empty queue gave {nothing:?}");
    let nothing = source.receive(ask(1, Duration::from_secs(1))).await?;
    ensure!(nothing.is_empty(), "an empty queue gave {nothing:?}");
    let most = capabilities.longest_wait.min(Duration::from_secs(20));
    ensure!(began.elapsed() < most, "two waits of a second took {:?}", began.elapsed());
    long_poll(&channel, &*source).await?;
    let number = 6.min(capabilities.receive_batch);
    for message in 0..number {
        channel.send(&format!("m{message}"), ack()).await?;
    }
    let mut all = received(&*source, 1).await?;
    same("messages, where one was asked for", all.len(), 1)?;
    while all.len() < number {
        let more = received(&*source, capabilities.receive_batch).await?;
        ensure!(more.len() <= capabilities.receive_batch, "more than a batch: {}", more.len());
        all.extend(more);
    }
    settle_together(&*source, &all, capabilities.settle_batch).await?;
    channel.holds(Place::Source, 0).await?;
    Ok(Present)
}

/// The longest wait is taken, and ends when a message comes.
async fn long_poll(channel: &Channel, source: &dyn Source) -> Result<()> {
    let longest = source.capabilities().longest_wait;
    let send = async {
        sleep(Duration::from_millis(300)).await;
        channel.send("late", ack()).await
    };
    let began = Instant::now();
    let poll = async { Ok(source.receive(ask(1, longest)).await?) };
    let (polled, ()) = both(poll, send).await?;
    ensure!(began.elapsed() < longest, "a message did not end a wait of {longest:?}");
    let late = polled.first().context("the wait ended without its message")?;
    settle(source, late, Action::Ack).await
}

/// One request settles all of them; every second one is released first, and comes back.
async fn settle_together(
    source: &dyn Source,
    deliveries: &[pumphouse_contract::Delivery],
    batch: usize,
) -> Result<()> {
    ensure!(deliveries.len() <= batch, "a batch of {batch} is too small for this case");
    let settlements = deliveries.iter().enumerate().map(|(number, delivery)| Settlement {
        receipt: delivery.receipt.clone(),
        action: if number % 2 == 0 { Action::Ack } else { Action::Release(Duration::ZERO) },
    });
    let answers = source.settle(settlements.collect()).await;
    same("answers", answers.len(), deliveries.len())?;
    ensure!(answers.iter().all(Result::is_ok), "a settlement failed: {answers:?}");
    for _ in 0..deliveries.len() / 2 {
        let again = received(source, 1).await?;
        let again = again.first().context("nothing came back")?;
        settle(source, again, Action::Ack).await?;
    }
    Ok(())
}

async fn time(bench: Bench) -> Result<Shown> {
    longest_delay(&bench.channel().await?).await?;
    let channel = bench.brief_channel().await?;
    let source = channel.source().await?;
    let setting = source.capabilities().lease_setting;
    same("where the lease is set", setting, bench.configuration().lease_setting())?;
    if bench.configuration().withholds_lapsed() {
        channel.send_without_key("m", ack()).await?;
    } else {
        channel.send("m", ack()).await?;
    }
    let lease = bench.configuration().shortest_lease();
    let delivery = next(&*source, lease).await?;
    let delay = Duration::from_secs(2);
    let from = Instant::now();
    settle(&*source, &delivery, Action::Release(delay)).await?;
    let delivery = next(&*source, lease).await?;
    not_before("a delay", from, delay)?;
    // Received with the shortest lease, and not settled.
    drop(delivery);
    let from = Instant::now();
    let delivery = next(&*source, lease).await?;
    not_before("a lease", from, lease - Duration::from_millis(500))?;
    settle(&*source, &delivery, Action::Ack).await?;
    source.close().await;
    channel.holds(Place::Source, 0).await?;
    Ok(Present)
}

fn not_before(what: &str, from: Instant, length: Duration) -> Result<()> {
    // Servers measure with clocks of their own.
    let early = Duration::from_millis(250);
    let passed = from.elapsed();
    ensure!(passed + early >= length, "{what} of {length:?} ended after {passed:?}");
    Ok(())
}

/// The next message, with such a lease.
async fn next(source: &dyn Source, lease: Duration) -> Result<pumphouse_contract::Delivery> {
    let began = Instant::now();
    loop {
        let mut ask = ask(1, Duration::from_secs(1));
        ask.lease = lease;
        if let Some(delivery) = source.receive(ask).await?.pop() {
            return Ok(delivery);
        }
        ensure!(began.elapsed() < Duration::from_secs(60), "nothing came back");
    }
}

async fn longest_delay(channel: &Channel) -> Result<()> {
    let source = channel.source().await?;
    let capabilities = *source.capabilities();
    channel.send("m", ack()).await?;
    // The longest lease is taken too.
    let delivery = next(&*source, capabilities.longest_lease).await?;
    let mut longest = capabilities.longest_delay;
    if capabilities.delay_counts_from_receive {
        longest = longest.saturating_sub(Duration::from_secs(2));
    }
    settle(&*source, &delivery, Action::Release(longest)).await?;
    let nothing = source.receive(ask(1, Duration::from_secs(1))).await?;
    ensure!(nothing.is_empty(), "a message that is away came back: {nothing:?}");
    channel.holds(Place::Source, 1).await
}

async fn depth(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let host = channel.host(Setup::default()).await?;
    for number in 0..3 {
        channel.send(&format!("m{number}"), reject("none")).await?;
    }
    host.noted("Routed", 3).await?;
    channel.holds(Place::DeadLetter, 3).await?;
    channel.holds(Place::Source, 0).await?;
    host.stop().await?;
    let depth = channel.sink(Place::DeadLetter).await?.depth().await?;
    if !bench.configuration().tells_depth() {
        same("the depth", depth, Depth::default())?;
        same("what the host routed stands in", host.notes.count("Routed"), 3)?;
        return Ok(Absent);
    }
    same("the depth", depth.messages, Some(3))?;
    // Where the broker can't tell the age, the host's own count of what it routed stands in.
    same(
        "whether the age is known",
        depth.oldest_age.is_some(),
        bench.configuration().is_embedded(),
    )?;
    same("what the host routed", host.notes.count("Routed"), 3)?;
    Ok(Present)
}
