//! S-5: deduplication, with the real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use pumphouse_contract::ports::{BoxFuture, Commit, MarkKey, State, StateError};
use pumphouse_contract::{Headers, Outgoing, Timestamp};
use pumphouse_pump::KeySource;
use pumphouse_state::SqliteState;
use serde_json::json;
use tempfile::TempDir;
use tracing::Level;

use super::{Case, Present, Shown, ack, case};
use crate::bench::{Bench, Channel, same};
use crate::host::{Host, Setup};
use crate::rows::Place;

pub(super) const CASES: &[Case] = &[
    case!(
        "S-5",
        "duplicate",
        duplicate,
        "a duplicate by its key is acknowledged without a call, also at C-17's count"
    ),
    case!(
        "S-5",
        "before the ack",
        before_the_ack,
        "a crash between mark and acknowledgement makes the redelivery a no-op"
    ),
    case!(
        "S-5",
        "before the mark",
        before_the_mark,
        "a crash before the mark handles again; a store that fails never acknowledges"
    ),
    case!("S-5", "no key", no_key, "a message without the header is known by its id"),
];

/// A store on disk, and the directory that it is in.
struct Store {
    state: Arc<Unsteady>,
    _directory: TempDir,
}

impl Store {
    fn open(bench: &Bench) -> Result<Self> {
        let directory = bench.world().directory()?;
        let inner = SqliteState::open(directory.path())?;
        let state = Arc::new(Unsteady { inner, failing: AtomicUsize::new(0) });
        Ok(Self { state, _directory: directory })
    }

    fn setup(&self, budget: i64) -> Setup {
        let key = KeySource::Header("idempotency-key".to_owned());
        let deduplicate = Some((self.state.clone() as Arc<dyn State>, key));
        Setup { deduplicate, ..Setup::budget(budget) }
    }
}

/// The real store, whose commits fail as often as a case says.
struct Unsteady {
    inner: SqliteState,
    failing: AtomicUsize,
}

impl State for Unsteady {
    fn seen<'a>(
        &'a self,
        key: &'a MarkKey,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        self.inner.seen(key, now)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), StateError>> {
        let one_less = |left: usize| left.checked_sub(1);
        if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            let error = StateError { path: "state".to_owned(), text: "scripted".to_owned() };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.commit(commit)
    }
}

async fn send(channel: &Channel, tag: &str, key: Option<&str>) -> Result<()> {
    let headers: Headers = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    let body = json!({ "do": "ack", "tag": tag }).to_string().into();
    let ordering_key = Some(tag.to_owned());
    channel.send_message(Outgoing { headers, ordering_key, body, ..Outgoing::default() }).await
}

async fn gone(channel: &Channel, host: &Host) -> Result<()> {
    channel.holds(Place::Source, 0).await?;
    host.stop().await
}

async fn duplicate(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let store = Store::open(&bench)?;
    let host = channel.host(store.setup(1)).await?;
    send(&channel, "first", Some("k")).await?;
    host.acked("first").await?;
    send(&channel, "second", Some("k")).await?;
    host.noted("Duplicate", 1).await?;
    gone(&channel, &host).await?;
    same("calls for the second", host.calls.counts("second"), vec![])?;
    send(&channel, "third", Some("k")).await?;
    channel.deliver_in_vain(Place::Source, 4).await?;
    let host = channel.host(store.setup(1)).await?;
    host.noted("Duplicate", 1).await?;
    gone(&channel, &host).await?;
    same("copies", channel.depth(Place::DeadLetter).await?, 0)?;
    store.state.inner.close().await;
    Ok(Present)
}

async fn before_the_ack(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let store = Store::open(&bench)?;
    let host = channel.host(Setup { short_lease: true, ..store.setup(-1) }).await?;
    host.tap.script.swallow.store(1, Ordering::SeqCst);
    send(&channel, "m", Some("k")).await?;
    host.noted("Duplicate", 1).await?;
    gone(&channel, &host).await?;
    same("calls", host.calls.counts("m"), vec![0])?;
    ensure!(host.tap.deliveries().len() > 1, "it was not delivered again");
    store.state.inner.close().await;
    Ok(Present)
}

async fn before_the_mark(bench: Bench) -> Result<Shown> {
    let channel = bench.channel().await?;
    let store = Store::open(&bench)?;
    store.state.failing.store(2, Ordering::SeqCst);
    let host = channel.host(store.setup(-1)).await?;
    send(&channel, "m", Some("k")).await?;
    host.called("m", 3).await?;
    gone(&channel, &host).await?;
    same("calls", host.calls.counts("m").len(), 3)?;
    same("releases", host.tap.releases("m").len(), 2)?;
    let text = "deduplication failed; the message is not acknowledged";
    same("errors", host.lines(Level::ERROR, text).len(), 2)?;
    store.state.inner.close().await;
    Ok(Present)
}

async fn no_key(bench: Bench) -> Result<Shown> {
    let channel = bench.brief_channel().await?;
    let store = Store::open(&bench)?;
    let host = channel.host(Setup { short_lease: true, ..store.setup(-1) }).await?;
    host.tap.script.swallow.store(1, Ordering::SeqCst);
    send(&channel, "one", None).await?;
    host.noted("Duplicate", 1).await?;
    channel.send("other", ack()).await?;
    host.acked("other").await?;
    gone(&channel, &host).await?;
    same("calls for the one", host.calls.counts("one"), vec![0])?;
    same("calls for the other", host.calls.counts("other"), vec![0])?;
    store.state.inner.close().await;
    Ok(Present)
}
