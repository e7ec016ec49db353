//! The sandbox: where handlers are loaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pumphouse_contract::ports::{HandlerStatus, Handlers};

use crate::errors::{DeployError, SandboxError};
use crate::handler::LoadedHandler;
use crate::machine::Machine;
use crate::settings::{HandlerSpec, SandboxSettings};
use crate::watch::Watcher;

/// Where handlers run. Clones share everything.
///
/// It has threads of its own: guests run on a runtime of theirs, one thread ticks, one compiles, one watches
/// files. They end with [`Sandbox::shutdown`], or when the last clone and the last handler are gone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    machine: Arc<Machine>,
    handlers: Mutex<BTreeMap<String, Arc<LoadedHandler>>>,
    watcher: Mutex<Option<Watcher>>,
}

impl Sandbox {
    /// Reserves the pool and starts the threads. Needs no runtime.
    ///
    /// # Errors
    /// The machine does not give what the settings ask for, or the cache can't be trusted.
    pub fn new(settings: SandboxSettings) -> Result<Self, SandboxError> {
        let shared = Arc::new(Shared {
            machine: Arc::new(Machine::new(&settings)?),
            handlers: Mutex::new(BTreeMap::new()),
            watcher: Mutex::new(None),
        });
        let watched = Arc::downgrade(&shared);
        let watcher = Watcher::start(settings.scan_interval, move || scan(&watched))?;
        *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
        Ok(Self { shared })
    }

    /// Loads a handler, and compiles its component where no compiled one is cached. A handler of the same name is
    /// replaced in [`Handlers::list`] and is no longer watched; who holds it may go on calling it.
    ///
    /// A dropped future stops waiting; what is being compiled is compiled.
    ///
    /// # Errors
    /// The component can't be read, is none, or does not fit this host; or a limit is beyond the host's own.
    pub async fn load(&self, spec: HandlerSpec) -> Result<Arc<LoadedHandler>, DeployError> {
        let machine = self.shared.machine.clone();
        let path = spec.component.clone();
        let name = spec.name.clone();
        let loading = machine.guests().clone();
        let loaded = loading.spawn_blocking(move || LoadedHandler::load(&machine, spec)).await;
        let loaded = loaded.map_err(|error| DeployError::Host { path, text: error.to_string() })?;
        let handler = Arc::new(loaded?);
        self.shared.handlers().insert(name, handler.clone());
        Ok(handler)
    }

    /// Forgets a handler: it is no longer listed and no longer watched. Who holds it may go on calling it.
    pub fn unload(&self, name: &str) -> Option<Arc<LoadedHandler>> {
        self.shared.handlers().remove(name)
    }

    /// Stops watching and cuts every call, each of which ends with a fault of the kind `host`. Does not wait.
    pub fn shutdown(&self) {
        drop(self.shared.watcher.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.shared.machine.stop();
    }
}

impl Handlers for Sandbox {
    fn list(&self) -> Vec<HandlerStatus> {
        self.shared.handlers().values().map(|handler| handler.status()).collect()
    }
}

impl Shared {
    fn handlers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LoadedHandler>>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at every handler's file. False where the sandbox is gone.
fn scan(shared: &Weak<Shared>) -> bool {
    let Some(shared) = shared.upgrade() else { return false };
    let handlers: Vec<_> = shared.handlers().values().cloned().collect();
    handlers.iter().for_each(LoadedHandler::scan);
    true
}
