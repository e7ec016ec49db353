//! The store that outlives the host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{BoxFuture, Commit, MarkKey, State, StateError};
use tokio::sync::{mpsc, oneshot};

use crate::store::{StateOpenError, Store};
use crate::writer::{self, Request};

/// How many requests wait for the thread; whoever has one more waits to hand it over.
const QUEUE: usize = 1024;

/// How long an answer may take before the store counts as failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Marks in a SQLite database, `state.db` in the state directory.
///
/// A thread of its own owns the database, so nothing here blocks the runtime. What is asked for while it syncs is
/// stored by one transaction. A commit has ended only when it is on the disk. Calls wait at most 30 s; a call
/// that gave up may still have stored its mark, which then makes the redelivery a duplicate of a message that
/// was handled.
///
/// Expired marks are removed with each transaction, and once a second while marks are only read; the time that
/// counts is the one that callers pass.
///
/// Dropping it ends the thread once what was asked for is done; [`close`](Self::close) waits for that.
#[derive(Debug)]
pub struct SqliteState {
    requests: mpsc::Sender<Request>,
    path: Arc<str>,
}

impl SqliteState {
    /// Opens the store in `directory`, which is made where it is missing. Blocks: it belongs to the start.
    ///
    /// # Errors
    /// The directory can't be made; the file can't be opened, is damaged, belongs to another program or was
    /// written by a later version.
    pub fn open(directory: &Path) -> Result<Self, StateOpenError> {
        let store = Store::open(directory)?;
        let file = store.path().to_owned();
        let (sender, receiver) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("pumphouse-state".to_owned())
            .spawn(move || writer::run(store, receiver))
            .map_err(|source| StateOpenError::Thread { path: file.clone(), source })?;
        Ok(Self { requests: sender, path: file.display().to_string().into() })
    }

    /// Does what was asked for, closes the database and ends the thread. Later calls fail. Waits at most 30 s.
    pub async fn close(&self) {
        let (sender, closed) = oneshot::channel();
        let asked = async {
            if self.requests.send(Request::Close(sender)).await.is_ok() {
                let _ = closed.await;
            }
        };
        if tokio::time::timeout(ANSWER_TIMEOUT, asked).await.is_err() {
            tracing::warn!(path = %self.path, "state store did not close in time");
        }
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(writer::Reply<T>) -> Request,
    ) -> Result<T, StateError> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.requests.send(request(reply)).await.map_err(|_| self.error("closed"))?;
            answer.await.map_err(|_| self.error("closed before it answered"))?
        };
        tokio::time::timeout(ANSWER_TIMEOUT, asked)
            .await
            .unwrap_or_else(|_| Err(self.error("no answer within 30 s")))
    }

    fn error(&self, text: &str) -> StateError {
        StateError { path: self.path.to_string(), text: text.to_owned() }
    }
}

impl State for SqliteState {
    fn seen<'a>(
        &'a self,
        key: &'a MarkKey,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        Box::pin(self.ask(move |reply| Request::Seen(key.clone(), now, reply)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(self.ask(move |reply| Request::Commit(commit, reply)))
    }
}
