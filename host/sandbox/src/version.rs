//! One version of a handler: a component that is compiled, linked and ready to be instantiated.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use pumphouse_contract::ports::{BoxFuture, Invocation, Version};
use pumphouse_contract::{Ended, Fault, FaultKind};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, Span};

use crate::call;
use crate::entry::Entry;
use crate::machine::Machine;
use crate::settings::Limits;
use crate::tenant::Tenant;

/// What a version's calls need.
pub(crate) struct Code {
    pub(crate) machine: Arc<Machine>,
    pub(crate) name: Arc<str>,
    pub(crate) digest: Arc<str>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) entry: Entry,
    pub(crate) limits: Limits,
    pub(crate) logging: bool,
    pub(crate) config: Option<Arc<BTreeMap<String, String>>>,
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

    /// Calls the handler on the caller's own task, which must be one of the guests' runtime or share it with
    /// nothing that is in a hurry. What [`Version::call`] does, but for the way to the guests' threads.
    pub async fn call_here(&self, invocation: Invocation) -> Ended {
        call::run(&self.code, invocation, Instant::now()).await
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
        let began = Instant::now();
        let code = self.code.clone();
        let call = async move { call::run(&code, invocation, began).await };
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
