use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::ANY;

const RECORDED_LIMIT: usize = 4_096;
const BODY_LIMIT: usize = 16 * 1024;

/// A request that passed, or should have.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its operation, or the method of a gRPC call.
    pub operation: String,
    /// When it had arrived in full.
    pub at: Instant,
    /// Its body, or the first message of a gRPC call, cut at 16 KiB.
    pub body: Bytes,
}

impl Seen {
    /// The body as JSON; `Null` when it is something else, or was cut.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Pages<R> {
    counts: BTreeMap<String, u64>,
    in_flight: BTreeMap<String, u64>,
    requests: VecDeque<R>,
}

impl<R> Default for Pages<R> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), in_flight: BTreeMap::new(), requests: VecDeque::new() }
    }
}

/// What passed through a proxy.
#[derive(Debug)]
pub(crate) struct Journal<R = Seen> {
    pages: Mutex<Pages<R>>,
    arrivals: watch::Sender<()>,
}

impl<R> Default for Journal<R> {
    fn default() -> Self {
        Self { pages: Mutex::default(), arrivals: watch::Sender::default() }
    }
}

/// Keeps a request in flight while it lives.
pub(crate) struct InFlight<R = Seen> {
    journal: Arc<Journal<R>>,
    operation: String,
}

/// As much of a body as is kept. A copy: a slice would keep the whole of a large one.
pub(crate) fn kept(body: &Bytes) -> Bytes {
    Bytes::copy_from_slice(body.get(..BODY_LIMIT).unwrap_or(body))
}

impl Journal {
    pub(crate) fn begin(self: &Arc<Self>, operation: &str, body: &Bytes) -> InFlight {
        let seen = Seen { operation: operation.to_owned(), at: Instant::now(), body: kept(body) };
        self.record(operation, seen)
    }
}

impl<R: Clone> Journal<R> {
    pub(crate) fn record(self: &Arc<Self>, operation: &str, seen: R) -> InFlight<R> {
        let mut pages = self.pages();
        *pages.counts.entry(operation.to_owned()).or_default() += 1;
        *pages.in_flight.entry(operation.to_owned()).or_default() += 1;
        if pages.requests.len() >= RECORDED_LIMIT {
            pages.requests.pop_front();
        }
        pages.requests.push_back(seen);
        drop(pages);
        self.arrivals.send_replace(());
        InFlight { journal: self.clone(), operation: operation.to_owned() }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.pages().counts.clone()
    }

    pub(crate) fn count(&self, operation: &str) -> u64 {
        total(&self.pages().counts, operation)
    }

    pub(crate) fn in_flight(&self, operation: &str) -> u64 {
        total(&self.pages().in_flight, operation)
    }

    pub(crate) fn requests(&self) -> Vec<R> {
        self.pages().requests.iter().cloned().collect()
    }

    pub(crate) async fn wait_for(&self, operation: &str, count: u64, limit: Duration) -> bool {
        let mut arrivals = self.arrivals.subscribe();
        let wait = async {
            // The sender lives as long as this journal, so the wait itself can't fail.
            while self.count(operation) < count && arrivals.changed().await.is_ok() {}
        };
        timeout(limit, wait).await.is_ok()
    }

    pub(crate) fn reset(&self) {
        let mut pages = self.pages();
        pages.counts.clear();
        pages.requests.clear();
    }
}

impl<R> Journal<R> {
    fn pages(&self) -> MutexGuard<'_, Pages<R>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Drop for InFlight<R> {
    fn drop(&mut self) {
        if let Some(count) = self.journal.pages().in_flight.get_mut(&self.operation) {
            *count = count.saturating_sub(1);
        }
    }
}

fn total(counts: &BTreeMap<String, u64>, operation: &str) -> u64 {
    if operation == ANY {
        return counts.values().sum();
    }
    counts.get(operation).copied().unwrap_or_default()
}
