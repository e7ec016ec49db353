//! Takes note of a handler's calls, and changes nothing of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pumphouse_contract::ports::{BoxFuture, Handler, Invocation, Version};
use pumphouse_contract::{Ended, Fault, Outcome};

/// A call that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The message.
    pub(crate) id: String,
    /// What the handler was told.
    pub(crate) count: u32,
    pub(crate) took: Duration,
    pub(crate) result: Result<Outcome, Fault>,
}

/// The calls of one handler, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Vec<Call>>);

impl Calls {
    /// Those of one message.
    pub(crate) fn of(&self, id: &str) -> Vec<Call> {
        self.lock().iter().filter(|call| call.id == id).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler whose calls are noted.
pub(crate) struct Noted {
    pub(crate) inner: Arc<dyn Handler>,
    pub(crate) calls: Arc<Calls>,
}

impl Handler for Noted {
    fn begin(&self) -> Arc<dyn Version> {
        Arc::new(NotedVersion { inner: self.inner.begin(), calls: self.calls.clone() })
    }

    fn slots(&self) -> Option<usize> {
        self.inner.slots()
    }
}

struct NotedVersion {
    inner: Arc<dyn Version>,
    calls: Arc<Calls>,
}

impl Version for NotedVersion {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn digest(&self) -> &str {
        self.inner.digest()
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        let (id, count) = (invocation.message.id.clone(), invocation.count.0);
        Box::pin(async move {
            let began = Instant::now();
            let ended = self.inner.call(invocation).await;
            let result = ended.result.clone();
            self.calls.lock().push(Call { id, count, took: began.elapsed(), result });
            ended
        })
    }
}
