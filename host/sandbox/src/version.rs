//! One version of a handler: a component that is compiled, linked and ready to be instantiated.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pumphouse_contract::ports::{BoxFuture, Invocation, Version};
use pumphouse_contract::{Ended, Fault, FaultKind};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, Span};

use crate::call::Call;
use crate::machine::Machine;
use crate::resident::Resident;
use crate::reuse::Shelf;
use crate::services::Services;
use crate::settings::Limits;
use crate::tenant::Owner;

/// What a version's calls need.
pub(crate) struct Code {
    pub(crate) machine: Arc<Machine>,
    pub(crate) name: Arc<str>,
    pub(crate) digest: Arc<str>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) component: Arc<Resident>,
    /// The pool that instances come from, and where they rest.
    pub(crate) shelf: Shelf,
    pub(crate) limits: Limits,
    pub(crate) services: Arc<Services>,
    /// The handler's own places, shared by its versions.
    pub(crate) places: Arc<Semaphore>,
}

/// A version that runs in the sandbox.
pub struct LoadedVersion {
    code: Arc<Code>,
}

impl std::fmt::Debug for LoadedVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Code { name, digest, .. } = &*self.code;
        f.debug_struct("LoadedVersion").field("name", name).field("digest", digest).finish()
    }
}

impl LoadedVersion {
    pub(crate) fn new(code: Code) -> Self {
        Self { code: Arc::new(code) }
    }

    /// The most instances that its pool has at once, for all handlers.
    pub(crate) fn pool_size(&self) -> usize {
        self.code.shelf.pool.size
    }

    /// Calls the handler on the caller's own task, which must be one of the guests' runtime or share it with
    /// nothing that is in a hurry. What [`Version::call`] does, but for the way to the guests' threads.
    pub async fn call_here(&self, invocation: Invocation) -> Ended {
        Call::begin(self.code.clone()).run(invocation).await
    }
}

impl Version for LoadedVersion {
    fn name(&self) -> &str {
        &self.code.name
    }

    fn digest(&self) -> &str {
        &self.code.digest
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        // Begun here and not on the guests' threads, which may be busy: who receives looks at what is under way.
        let call = Call::begin(self.code.clone()).run(invocation);
        let task = self.code.machine.guests().spawn(call.instrument(Span::current()));
        Box::pin(GuestTask(task))
    }
}

/// A call on the guests' runtime. Dropping this ends it.
struct GuestTask(JoinHandle<Ended>);

impl Future for GuestTask {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        Pin::new(&mut self.0).poll(cx).map(|ended| ended.unwrap_or_else(|error| lost(&error)))
    }
}

impl Drop for GuestTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lost(error: &JoinError) -> Ended {
    let detail = if error.is_cancelled() {
        "the sandbox was shut down during the call".to_owned()
    } else {
        tracing::error!(%error, "the sandbox failed during a call");
        "the sandbox failed during the call; the host's log says more".to_owned()
    };
    Ended::fault(Fault::new(FaultKind::Host, detail))
}
