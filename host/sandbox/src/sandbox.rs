//! The sandbox: where handlers are loaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pumphouse_contract::ports::{HandlerStatus, Handlers, TenantStatus, Tenants};

use crate::errors::{DeployError, SandboxError};
use crate::handler::LoadedHandler;
use crate::machine::Machine;
use crate::roster::{Entered, Roster};
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
    roster: Arc<Roster>,
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
            roster: Arc::default(),
            watcher: Mutex::new(None),
        });
        let watched = Arc::downgrade(&shared);
        let watcher = Watcher::start(
            settings.scan_interval,
            move || files(&watched),
            |handler| look(&handler),
        )?;
        *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
        Ok(Self { shared })
    }

    /// Loads a handler, and compiles its component where no compiled one is cached. One that was compiled and found to
    /// fit before is in memory only after its first call.
    ///
    /// It is listed and watched as long as someone holds it, or until [`Sandbox::unload`]. Of several with one name
    /// the last is listed, so that a configuration can be prepared beside the one in force, and dropped.
    ///
    /// A dropped future stops waiting; what is being compiled is compiled.
    ///
    /// # Errors
    /// The component can't be read, is none, or does not fit this host; a limit is beyond the host's own; or it is
    /// more than the tenant may have.
    pub async fn load(&self, spec: HandlerSpec) -> Result<Arc<LoadedHandler>, DeployError> {
        let machine = self.shared.machine.clone();
        let entered = self.enter(&spec)?;
        let path = spec.component.clone();
        let loading = machine.guests().clone();
        let loaded =
            loading.spawn(async move { LoadedHandler::load(&machine, spec, entered).await });
        let stopped = |_| DeployError::Host { path, text: "the sandbox was shut down".to_owned() };
        let handler = Arc::new(loaded.await.map_err(stopped)??);
        self.shared.handlers().push(Arc::downgrade(&handler));
        Ok(handler)
    }

    fn enter(&self, spec: &HandlerSpec) -> Result<Entered, DeployError> {
        let limits = self.shared.machine.tenants.of_handler(&spec.name).limits.load();
        let limit = limits.handlers.unwrap_or(usize::MAX);
        self.shared.roster.enter(&spec.name, limit).map_err(|asked| DeployError::TenantLimit {
            handler: spec.name.clone(),
            key: "limits.handlers",
            asked,
            limit,
        })
    }

    /// Sets what all handlers of a tenant together may use, from now on.
    pub fn set_tenant(&self, name: &str, limits: TenantLimits) {
        self.shared.machine.tenants.set(name, limits);
    }

    /// Every tenant that has limits or had handlers, by name, with what it and its handlers used.
    #[must_use]
    pub fn tenants(&self) -> Vec<TenantStatus> {
        self.shared.machine.tenants.status()
    }

    /// How many handlers' components are in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.shared.machine.residents.count()
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

impl Tenants for Sandbox {
    fn list(&self) -> Vec<TenantStatus> {
        self.shared.machine.tenants.status()
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

/// The handlers whose files are looked at next. Drops instances that have rested for too long. None where the sandbox is
/// gone.
fn files(shared: &Weak<Shared>) -> Option<Vec<Weak<LoadedHandler>>> {
    let shared = shared.upgrade()?;
    shared.machine.sweep();
    let mut handlers = shared.handlers();
    handlers.retain(|handler| handler.strong_count() > 0);
    Some(handlers.clone())
}

/// Looks at a handler's file, if it is still held.
fn look(handler: &Weak<LoadedHandler>) {
    if let Some(handler) = handler.upgrade() {
        handler.scan();
    }
}
