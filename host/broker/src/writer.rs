//! The one thread that writes, and commits in groups.
//!
//! It takes every operation that waits for it, writes them in one transaction, and answers after the commit. While
//! the disk works on one commit the next group gathers, so that many callers share the cost of one.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use pumphouse_contract::{Clock, Mono};
use rusqlite::ErrorCode;
use tokio::sync::mpsc::{self, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::StoreError;
use crate::lock::DirectoryLock;
use crate::ops::Op;
use crate::reserve::Reserve;
use crate::store::Store;

/// The most operations that wait for the writer, and that one transaction holds.
const MOST_WAITING: usize = 1024;

/// The most bytes of messages that wait for the writer.
const MOST_WAITING_BYTES: u32 = 64 << 20;

/// How long a disk that was full is taken for full before it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why the store takes nothing more, once it does not.
pub(crate) type Problem = Arc<OnceLock<StoreError>>;

/// The way to the writer. The writer ends when it is told to close, or when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    ops: mpsc::Sender<Op>,
    room: Arc<Semaphore>,
    problem: Problem,
}

impl Writer {
    /// Starts the thread. Blocks until room is held on the disk.
    pub(crate) fn start(
        store: Store,
        lock: DirectoryLock,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (ops, waiting) = mpsc::channel(MOST_WAITING);
        let problem = Problem::default();
        let path: Arc<str> = store.path().display().to_string().into();
        let reserve = Reserve::of(store.path().parent().unwrap_or(Path::new(".")));
        let shared = Arc::clone(&problem);
        let mut desk = Desk { store, path, reserve, clock, problem: shared, full_since: None };
        if !desk.reserve.hold() {
            desk.found_full();
        }
        thread::Builder::new()
            .name("broker-writer".to_owned())
            .spawn(move || desk.run(waiting, lock))?;
        let room = Arc::new(Semaphore::new(MOST_WAITING_BYTES as usize));
        Ok(Self { ops, room, problem })
    }

    /// Room for an operation. Taken before anything is put aside for it, so that nothing can come in between.
    pub(crate) async fn reserve(&self) -> Result<Permit<'_, Op>, StoreError> {
        self.ops.reserve().await.map_err(|_| self.ended())
    }

    /// Room for the bytes of a message.
    pub(crate) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, StoreError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(MOST_WAITING_BYTES);
        Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| self.ended())
    }

    /// The writer's answer to an operation that was sent.
    pub(crate) async fn answer<T>(
        &self,
        reply: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        reply.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Why the store takes nothing more; none where it does.
    pub(crate) fn problem(&self) -> Option<&StoreError> {
        self.problem.get()
    }

    fn ended(&self) -> StoreError {
        self.problem.get().cloned().unwrap_or(StoreError::Closed)
    }

    /// Finishes what waits, closes the database and gives up the directory.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.ops.send(Op::Close(reply)).await.is_ok() {
            // The answer is that the other end is gone.
            let _ = closed.await;
        }
    }
}

/// The writer's side.
struct Desk {
    store: Store,
    path: Arc<str>,
    reserve: Reserve,
    clock: Arc<dyn Clock>,
    problem: Problem,
    /// When the disk was last found full, as long as it is.
    full_since: Option<Mono>,
}

impl Desk {
    fn run(mut self, mut waiting: mpsc::Receiver<Op>, lock: DirectoryLock) {
        let mut batch = Vec::new();
        let mut closing = Vec::new();
        while waiting.blocking_recv_many(&mut batch, MOST_WAITING) > 0 {
            for close in batch.extract_if(.., |op| matches!(op, Op::Close(_))) {
                waiting.close();
                closing.push(close);
            }
            self.commit(std::mem::take(&mut batch));
        }
        self.end();
        drop(lock);
        drop(closing);
    }

    /// Closes the database, its log emptied.
    fn end(mut self) {
        if self.problem.get().is_none()
            && let Err(error) = self.store.empty_log()
        {
            tracing::warn!(%error, "the broker's log could not be emptied at its end");
        }
    }

    /// Writes a group, and says to each what came of it.
    fn commit(&mut self, batch: Vec<Op>) {
        if let Some(problem) = self.problem.get() {
            return refuse(batch, problem);
        }
        let mut batch = if self.has_room() { batch } else { self.without_additions(batch) };
        if batch.is_empty() {
            return;
        }
        match self.write_in_two_tries(&mut batch) {
            Ok(()) => self.done(batch),
            Err(error) if is_full(&error) => self.commit_on_a_full_disk(batch),
            Err(error) => refuse(batch, &self.fail(&error)),
        }
    }

    /// Writes; where the disk is full, once more with the log's room.
    fn write_in_two_tries(&mut self, batch: &mut [Op]) -> rusqlite::Result<()> {
        match self.write(batch) {
            Err(error) if is_full(&error) => {
                self.store.empty_log()?;
                self.write(batch)
            }
            written => written,
        }
    }

    fn write(&mut self, batch: &mut [Op]) -> rusqlite::Result<()> {
        self.store.transaction(|writing| batch.iter_mut().try_for_each(|op| op.write(writing)))
    }

    fn done(&mut self, batch: Vec<Op>) {
        batch.into_iter().for_each(Op::done);
        match self.store.tidy(self.clock.wall()) {
            Ok(()) => {}
            Err(error) if is_full(&error) => {}
            Err(error) => drop(self.fail(&error)),
        }
    }

    /// What only adds is refused, so that what is there can be received and settled with the room that is left.
    fn commit_on_a_full_disk(&mut self, batch: Vec<Op>) {
        self.found_full();
        let mut batch = self.without_additions(batch);
        match self.write_in_two_tries(&mut batch) {
            Ok(()) => self.done(batch),
            Err(error) if is_full(&error) => refuse(batch, &self.full()),
            Err(error) => refuse(batch, &self.fail(&error)),
        }
    }

    fn found_full(&mut self) {
        if self.full_since.is_none() {
            tracing::warn!(store = %self.path, "the disk is full, nothing more is published");
        }
        self.full_since = Some(self.clock.mono());
        self.reserve.give_up();
    }

    /// Whether something can be added. A full disk is looked at again after a while.
    fn has_room(&mut self) -> bool {
        let Some(since) = self.full_since else { return true };
        let now = self.clock.mono();
        if now.since(since) < LOOK_AGAIN {
            return false;
        }
        self.full_since = Some(now);
        if self.reserve.hold() {
            tracing::info!(store = %self.path, "the disk has room again");
            self.full_since = None;
        }
        self.full_since.is_none()
    }

    fn full(&self) -> StoreError {
        StoreError::Full(Arc::clone(&self.path))
    }

    fn without_additions(&self, batch: Vec<Op>) -> Vec<Op> {
        let (adding, going_on) = batch.into_iter().partition(Op::adds);
        refuse(adding, &self.full());
        going_on
    }

    /// Takes nothing more from now on.
    ///
    /// After an error of the disk nobody knows what is on it: a second try of a sync can succeed although the first
    /// lost the data. What is really there is read when the store is opened anew.
    fn fail(&self, error: &rusqlite::Error) -> StoreError {
        tracing::error!(store = %self.path, %error, "the broker's store failed and takes nothing more");
        let text: Arc<str> = error.to_string().into();
        self.problem.get_or_init(|| StoreError::Failed(Arc::clone(&self.path), text)).clone()
    }
}

fn refuse(batch: Vec<Op>, error: &StoreError) {
    batch.into_iter().for_each(|op| op.refused(error.clone()));
}

/// Whether there was no room on the disk. The transaction is rolled back then and the store is sound.
fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
