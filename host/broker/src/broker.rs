//! The broker itself: its queues, and how it is opened and closed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pumphouse_contract::ports::{Depth, Sink, Source};
use pumphouse_contract::{Clock, Timestamp};
use tokio::sync::oneshot;

use crate::error::{BrokerError, StoreError};
use crate::ledger::{Entry, Ledger, Sequence};
use crate::limits::{Limits, Quota};
use crate::lock::DirectoryLock;
use crate::ops::{Create, Op};
use crate::queue::{Queue, Queues, check_name};
use crate::sink::QueueSink;
use crate::source::QueueSource;
use crate::store::{Store, Stored};
use crate::writer::Writer;

/// The embedded broker. Cloning it gives another handle on the same one.
#[derive(Clone)]
pub struct Broker(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("queues", &self.queues()).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backing: Backing,
    pub(crate) queues: Arc<Queues>,
    pub(crate) quota: Arc<Quota>,
    /// Marks the receipts and message ids of this opening.
    pub(crate) opening: u32,
    serial: AtomicU64,
    sequence: AtomicU64,
    closed: AtomicBool,
}

/// Where a change must be before it is seen.
pub(crate) enum Backing {
    Memory,
    Durable(Writer),
}

impl Broker {
    /// A broker in memory within [`Limits::MEMORY`]. What it holds ends with it.
    #[must_use]
    pub fn memory(clock: Arc<dyn Clock>) -> Self {
        Self::memory_within(clock, Limits::MEMORY)
    }

    /// A broker in memory within other limits.
    #[must_use]
    pub fn memory_within(clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self::new(clock, Backing::Memory, Arc::default(), Quota::new(limits))
    }

    /// The durable broker of a state directory, within [`Limits::DURABLE`]. The directory is made where it is not
    /// there, and is this broker's alone until it is closed. Leases and delays that an earlier process left go on
    /// for what is left of them.
    ///
    /// # Errors
    /// Another host has the directory; it can't be used; or the store in it is damaged, or of a newer version.
    pub async fn open(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, BrokerError> {
        Self::open_within(directory, clock, Limits::DURABLE).await
    }

    /// The durable broker within other limits.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub async fn open_within(
        directory: &Path,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Result<Self, BrokerError> {
        let directory = directory.to_owned();
        let opening = tokio::task::spawn_blocking(move || open(directory, clock, limits));
        opening.await.map_err(|_| StoreError::Closed)?
    }

    fn new(
        clock: Arc<dyn Clock>,
        backing: Backing,
        queues: Arc<Queues>,
        quota: Arc<Quota>,
    ) -> Self {
        // The standard library's hasher starts from the system's random numbers.
        let random = RandomState::new().hash_one(std::process::id());
        Self(Arc::new(Inner {
            clock,
            backing,
            queues,
            quota,
            opening: u32::try_from(random >> 32).unwrap_or_default(),
            serial: AtomicU64::new(0),
            sequence: AtomicU64::new(1),
            closed: AtomicBool::new(false),
        }))
    }

    /// Makes a queue; one that is there stays as it is.
    ///
    /// # Errors
    /// No queue can have that name, or the store does not take it.
    pub async fn create(&self, queue: &str) -> Result<(), BrokerError> {
        check_name(queue)?;
        self.0.usable()?;
        if self.exists(queue) {
            return Ok(());
        }
        let writer = match &self.0.backing {
            Backing::Memory => {
                self.0.queues.add(queue, Queue::new(0));
                return Ok(());
            }
            Backing::Durable(writer) => writer,
        };
        let (reply, answer) = oneshot::channel();
        let queues = Arc::clone(&self.0.queues);
        let create = Create { name: queue.to_owned(), queues, row: 0, reply };
        writer.reserve().await?.send(Op::Create(create));
        Ok(writer.answer(answer).await?)
    }

    /// Whether there is a queue of that name.
    #[must_use]
    pub fn exists(&self, queue: &str) -> bool {
        self.0.queues.get(queue).is_some()
    }

    /// The queues by name.
    #[must_use]
    pub fn queues(&self) -> Vec<String> {
        self.0.queues.names()
    }

    /// How full a queue is; none where there is no such queue.
    #[must_use]
    pub fn depth(&self, queue: &str) -> Option<Depth> {
        self.0.queues.get(queue).map(|queue| self.0.depth(&queue))
    }

    /// A queue to receive from. It need not be there yet: receiving says so as long as it is not.
    ///
    /// # Errors
    /// No queue can have that name, or the broker is closed.
    pub fn source(&self, queue: &str) -> Result<Arc<dyn Source>, BrokerError> {
        check_name(queue)?;
        self.0.usable()?;
        Ok(Arc::new(QueueSource::new(self.clone(), queue)))
    }

    /// A queue to publish to. It need not be there yet: publishing says so as long as it is not.
    ///
    /// # Errors
    /// No queue can have that name, or the broker is closed.
    pub fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>, BrokerError> {
        check_name(queue)?;
        self.0.usable()?;
        Ok(Arc::new(QueueSink::new(self.clone(), queue)))
    }

    /// Why the store takes nothing more, where it failed; for readiness. Only opening it anew helps then.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &self.0.backing {
            Backing::Memory => None,
            Backing::Durable(writer) => writer.problem().map(ToString::to_string),
        }
    }

    /// Finishes what was asked, takes nothing more, and gives up the state directory. Those that wait for a message
    /// are told. What is not settled lapses.
    pub async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.queues.wake_all();
        if let Backing::Durable(writer) = &self.0.backing {
            writer.close().await;
        }
    }
}

impl Inner {
    /// Whether the broker is open.
    pub(crate) fn usable(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// The next place in memory. Asked for while the queue is locked, so that places and order agree.
    pub(crate) fn next_sequence(&self) -> Sequence {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// A message id: 32 hexadecimal digits that sort by time. The time is 12 of them, this opening's mark 8, and a
    /// number of its own the rest.
    pub(crate) fn message_id(&self, now: Timestamp) -> String {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff_ffff;
        let number =
            (u128::from(now.0) << 80) | (u128::from(self.opening) << 48) | u128::from(serial);
        format!("{number:032x}")
    }

    pub(crate) fn depth(&self, queue: &Queue) -> Depth {
        let (messages, oldest) = queue.read(Ledger::depth);
        let now = self.clock.wall();
        Depth {
            messages: u64::try_from(messages).ok(),
            oldest_age: oldest.map(|oldest| now.since(oldest)),
        }
    }
}

/// Opens the durable broker. Blocks.
fn open(directory: PathBuf, clock: Arc<dyn Clock>, limits: Limits) -> Result<Broker, BrokerError> {
    let unusable = |source| BrokerError::Directory { directory: directory.clone(), source };
    make_directory(&directory).map_err(unusable)?;
    let lock = DirectoryLock::take(&directory)?;
    let store = Store::open(&directory)?;
    let quota = Quota::new(limits);
    let queues = load(&store, clock.as_ref(), &quota)
        .map_err(|source| BrokerError::Open { path: store.path().to_owned(), source })?;
    let writer = Writer::start(store, lock, Arc::clone(&clock)).map_err(unusable)?;
    tracing::info!(directory = %directory.display(), "the broker's store is open");
    Ok(Broker::new(clock, Backing::Durable(writer), Arc::new(queues), quota))
}

/// Makes the directory for this user alone, and its name sure to be on the disk.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => std::fs::File::open(parent)?.sync_all(),
        _ => std::fs::File::open(".")?.sync_all(),
    }
}

/// The ledgers, as the store has them.
fn load(store: &Store, clock: &dyn Clock, quota: &Arc<Quota>) -> rusqlite::Result<Queues> {
    let mut ledgers: BTreeMap<i64, Ledger> = BTreeMap::new();
    let mut keys = HashMap::new();
    let now = clock.mono();
    store.messages(clock.wall(), |stored| {
        let ledger = ledgers.entry(stored.queue).or_default();
        let (sequence, left) = (stored.sequence, stored.left);
        let entry = entry(stored, &mut keys, quota);
        match left {
            Some(left) => ledger.restore(sequence, entry, now.plus(left)),
            None => ledger.push(sequence, entry),
        }
    })?;
    let queues = Queues::default();
    for (row, name) in store.queues()? {
        queues.add(&name, Queue::with(row, ledgers.remove(&row).unwrap_or_default()));
    }
    Ok(queues)
}

fn entry(stored: Stored, keys: &mut HashMap<String, Arc<str>>, quota: &Arc<Quota>) -> Entry {
    Entry {
        key: stored.key.map(|key| {
            let shared = Arc::from(key.as_str());
            Arc::clone(keys.entry(key).or_insert(shared))
        }),
        published_at: stored.published_at,
        count: stored.count,
        first_received_at: stored.first_received_at,
        message: None,
        _charge: quota.forced_slot(),
    }
}
