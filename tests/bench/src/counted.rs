//! A source that counts its requests: on a broker that is paid by the request, they are what a batch saves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pumphouse_contract::Delivery;
use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, ReceiveError, Settlement, Source, Unsettled,
};

pub(crate) struct Counted {
    inner: Arc<dyn Source>,
    receives: AtomicUsize,
    settlements: AtomicUsize,
    settled: AtomicUsize,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Source>) -> Arc<Self> {
        let [receives, settlements, settled] = [(); 3].map(|()| AtomicUsize::new(0));
        Arc::new(Self { inner, receives, settlements, settled })
    }

    /// Receives and settlements so far.
    pub(crate) fn requests(&self) -> usize {
        self.receives() + self.settlements()
    }

    /// The same where each entry of a settlement is a request of its own.
    pub(crate) fn single_requests(&self) -> usize {
        self.receives() + self.settled.load(Ordering::Relaxed)
    }

    fn receives(&self) -> usize {
        self.receives.load(Ordering::Relaxed)
    }

    /// Settlements so far: all that a source asks for that is pushed to.
    pub(crate) fn settlements(&self) -> usize {
        self.settlements.load(Ordering::Relaxed)
    }
}

impl Source for Counted {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        self.receives.fetch_add(1, Ordering::Relaxed);
        self.inner.receive(ask)
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        self.settlements.fetch_add(1, Ordering::Relaxed);
        self.settled.fetch_add(batch.len(), Ordering::Relaxed);
        self.inner.settle(batch)
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn held(&self) -> usize {
        self.inner.held()
    }

    fn duplicates(&self) -> u64 {
        self.inner.duplicates()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
