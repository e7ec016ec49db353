//! The thread that owns the database. What came while it was syncing is stored by its next transaction.

use std::time::{Duration, Instant};

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{Commit, MarkKey, StateError};
use tokio::sync::{mpsc, oneshot};

use crate::store::Store;

/// The most requests of one round, and so the most marks of one transaction.
const ROUND: usize = 256;

/// How often expired marks are removed while nothing is stored.
const PURGE_EVERY: Duration = Duration::from_secs(1);

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StateError>>;

/// What the thread can be asked for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Whether a message is remembered.
    Seen(MarkKey, Timestamp, Reply<bool>),
    /// That a message is remembered from now on.
    Commit(Commit, Reply<()>),
    /// That the database is closed; told once it is.
    Close(oneshot::Sender<()>),
}

/// Answers until it is told to close, or nobody can ask any more.
pub(crate) fn run(mut store: Store, mut requests: mpsc::Receiver<Request>) {
    let mut round = Vec::with_capacity(ROUND);
    let mut closing = Vec::new();
    let mut purged = Instant::now();
    while closing.is_empty() && requests.blocking_recv_many(&mut round, ROUND) > 0 {
        let commits = answer_reads(&mut store, round.drain(..), &mut closing);
        if !commits.is_empty() {
            answer_commits(&mut store, commits);
            purged = Instant::now();
        } else if purged.elapsed() >= PURGE_EVERY {
            purge(&mut store);
            purged = Instant::now();
        }
    }
    requests.close();
    drop(store);
    for closed in closing {
        let _ = closed.send(());
    }
}

/// Reads come first: nobody may take a mark for stored that is only about to be.
fn answer_reads(
    store: &mut Store,
    round: impl Iterator<Item = Request>,
    closing: &mut Vec<oneshot::Sender<()>>,
) -> Vec<(Commit, Reply<()>)> {
    let mut commits = Vec::new();
    for request in round {
        match request {
            Request::Seen(key, now, reply) => {
                let _ = reply.send(store.seen(&key, now));
            }
            Request::Commit(commit, reply) => commits.push((commit, reply)),
            Request::Close(closed) => closing.push(closed),
        }
    }
    commits
}

/// A caller that is gone is no reason not to store: its message was handled.
fn answer_commits(store: &mut Store, commits: Vec<(Commit, Reply<()>)>) {
    let (commits, replies): (Vec<_>, Vec<_>) = commits.into_iter().unzip();
    let stored = store.commit(&commits);
    for reply in replies {
        let _ = reply.send(stored.clone());
    }
}

fn purge(store: &mut Store) {
    if let Err(error) = store.purge() {
        tracing::warn!(%error, "expired marks could not be removed");
    }
}
