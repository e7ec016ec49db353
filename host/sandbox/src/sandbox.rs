//! The sandbox: where handlers are loaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pumphouse_contract::ports::{HandlerStatus, Handlers};

use crate::errors::{DeployError, SandboxError};
use crate::handler::LoadedHandler;
use crate::machine::Machine;
use crate::settings::{HandlerSpec, SandboxSettings, TenantLimits};
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
    /// In the order in which they were loaded. Whoever loaded one holds it.
    handlers: Mutex<Vec<Weak<LoadedHandler>>>,
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
            handlers: Mutex::new(Vec::new()),
            watcher: Mutex::new(None),
        });
        let watched = Arc::downgrade(&shared);
        let watcher = Watcher::start(settings.scan_interval, move || scan(&watched))?;
        *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
        Ok(Self { shared })
    }

    /// Loads a handler, and compiles its component where no compiled one is cached.
    ///
    /// It is listed and watched as long as someone holds it, or until [`Sandbox::unload`]. Of several with one name
    /// the last is listed, so that a configuration can be prepared beside the one in force, and dropped.
    ///
    /// A dropped future stops waiting; what is being compiled is compiled.
    ///
    /// # Errors
    /// The component can't be read, is none, or does not fit this host; or a limit is beyond the host's own.
    pub async fn load(&self, spec: HandlerSpec) -> Result<Arc<LoadedHandler>, DeployError> {
        let machine = self.shared.machine.clone();
        let path = spec.component.clone();
        let loading = machine.guests().clone();
        let loaded = loading.spawn_blocking(move || LoadedHandler::load(&machine, spec)).await;
        let loaded = loaded.map_err(|error| DeployError::Host { path, text: error.to_string() })?;
        let handler = Arc::new(loaded?);
        self.shared.handlers().push(Arc::downgrade(&handler));
        Ok(handler)
    }

    /// Sets what all handlers of a tenant together may use, from now on.
    pub fn set_tenant(&self, name: &str, limits: TenantLimits) {
        self.shared.machine.tenants.get(name).limits.store(Arc::new(limits));
    }

    /// Forgets the handlers of that name: they are no longer listed or watched. Who holds one may go on calling it.
    pub fn unload(&self, name: &str) {
        let other = |handler: &Arc<LoadedHandler>| handler.name() != name;
        self.shared.handlers().retain(|handler| handler.upgrade().as_ref().is_some_and(other));
    }

    /// Stops watching and cuts every call, each of which ends with a fault of the kind `host`. Does not wait.
    pub fn shutdown(&self) {
        drop(self.shared.watcher.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.shared.machine.stop();
    }
}

impl Handlers for Sandbox {
    fn list(&self) -> Vec<HandlerStatus> {
        let handlers = self.shared.held();
        let by_name: BTreeMap<_, _> =
            handlers.iter().map(|handler| (handler.name().to_owned(), handler)).collect();
        by_name.values().map(|handler| handler.status()).collect()
    }
}

impl Shared {
    fn handlers(&self) -> MutexGuard<'_, Vec<Weak<LoadedHandler>>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handlers that someone holds. The others are forgotten.
    fn held(&self) -> Vec<Arc<LoadedHandler>> {
        let mut handlers = self.handlers();
        handlers.retain(|handler| handler.strong_count() > 0);
        handlers.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Looks at every handler's file. False where the sandbox is gone.
fn scan(shared: &Weak<Shared>) -> bool {
    let Some(shared) = shared.upgrade() else { return false };
    shared.held().iter().for_each(LoadedHandler::scan);
    true
}
