//! A source that counts its requests: on a broker that is paid by the request, they are what a batch saves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pumphouse_contract::Delivery;
use pumphouse_contract::ports::{
    Ask, BoxFuture, Capabilities, ReceiveError, Settlement, Source, Unsettled,
};

pub(super) struct Counted {
    inner: Arc<dyn Source>,
    requests: AtomicUsize,
}

impl Counted {
    pub(super) fn new(inner: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self { inner, requests: AtomicUsize::new(0) })
    }

    /// Receives and settlements so far.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Source for Counted {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        self.count();
        self.inner.receive(ask)
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        self.count();
        self.inner.settle(batch)
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
