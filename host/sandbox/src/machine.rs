//! What all handlers of a sandbox share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use wasmtime::Engine;

use crate::cache::Cache;
use crate::compiler::Compiler;
use crate::engine::Profile;
use crate::errors::SandboxError;
use crate::graves::Graves;
use crate::http::Outside;
use crate::load::{self, Linkers, Mapping};
use crate::pool::Pool;
use crate::resident::Residents;
use crate::sched;
use crate::settings::SandboxSettings;
use crate::tenant::Tenants;

/// Threads that load components: reading, hashing, linking. Compiling has one of its own.
const LOADING_THREADS: usize = 4;

/// Of which so many read what is deployed; the others are for messages that wait.
const DEPLOYING: usize = LOADING_THREADS / 2;

const NAME: &str = "pumphouse-guest";

/// The pools, the guests' runtime, the compiler and its cache.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) lean: Arc<Pool>,
    /// Made for the first handler that needs it: a host without one pays nothing.
    heavy: OnceLock<Arc<Pool>>,
    making_heavy: Mutex<()>,
    settings: SandboxSettings,
    pub(crate) compiler: Compiler,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) mapping: Mapping,
    pub(crate) linkers: Linkers,
    pub(crate) residents: Residents,
    pub(crate) graves: Graves,
    /// What tells this build of the host from others.
    pub(crate) build: String,
    /// Deploys that read their files.
    pub(crate) deploying: Semaphore,
    pub(crate) tenants: Tenants,
    pub(crate) outside: Outside,
    pub(crate) stack: usize,
    pub(crate) clock_resolution: Duration,
    pub(crate) max_memory: u64,
    pub(crate) max_table_elements: u64,
    pub(crate) max_component: u64,
    guests: Handle,
    runtime: Mutex<Option<Runtime>>,
}

impl Machine {
    pub(crate) fn new(settings: &SandboxSettings) -> Result<Self, SandboxError> {
        let lean = Arc::new(Pool::new(Profile::Lean, settings)?);
        let tenants = Tenants::new(sched::places(threads(settings)));
        tenants.share(&lean.slots);
        let cache = cache(settings, &lean.engine)?;
        let compiler = Compiler::start(&lean.engine, &settings.compiling, cache.clone())?;
        let graves = Graves::dig()?;
        // Last, since it may not be dropped where the caller is: nothing may fail after it.
        let runtime = runtime(threads(settings))?;
        Ok(Self {
            lean,
            heavy: OnceLock::new(),
            making_heavy: Mutex::new(()),
            settings: settings.clone(),
            compiler,
            cache,
            mapping: Mapping::default(),
            linkers: Linkers::default(),
            residents: Residents::new(settings.resident),
            graves,
            build: load::build(),
            deploying: Semaphore::new(DEPLOYING),
            tenants,
            outside: Outside::new(settings.http_trust.clone()),
            stack: settings.stack,
            clock_resolution: settings.clock_resolution,
            max_memory: settings.max_memory,
            max_table_elements: settings.max_table_elements,
            max_component: settings.max_component,
            guests: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
        })
    }

    /// The pool for handlers of a profile. The heavy one is reserved when it is asked for first.
    ///
    /// # Errors
    /// The machine does not give what the heavy pool reserves. The next who asks tries again.
    pub(crate) fn pool(&self, profile: Profile) -> Result<Arc<Pool>, SandboxError> {
        match profile {
            Profile::Lean => Ok(self.lean.clone()),
            Profile::Heavy => self.heavy(),
        }
    }

    fn heavy(&self) -> Result<Arc<Pool>, SandboxError> {
        let _making = self.making_heavy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = self.heavy.get() {
            return Ok(pool.clone());
        }
        let pool = Arc::new(Pool::new(Profile::Heavy, &self.settings)?);
        self.tenants.share(&pool.slots);
        tracing::info!(slots = pool.size, "pool for large handlers reserved");
        Ok(self.heavy.get_or_init(|| pool).clone())
    }

    /// Drops the instances that have rested past their time, and says what log lines were dropped.
    pub(crate) fn sweep(&self) {
        self.tenants.settle_logs();
        [Some(&self.lean), self.heavy.get()].into_iter().flatten().for_each(|pool| pool.sweep());
    }

    /// Where guests run: a runtime of their own, so that computing guests never delay transports and timers.
    pub(crate) fn guests(&self) -> &Handle {
        &self.guests
    }

    /// Cuts every call. Does not wait: a guest gives its thread back within a tick.
    pub(crate) fn stop(&self) {
        self.compiler.stop();
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
        [Some(&self.lean), self.heavy.get()].into_iter().flatten().for_each(|pool| pool.empty());
    }
}

impl Drop for Machine {
    /// A runtime may not simply be dropped where the last handle goes: that may be one of its own threads.
    fn drop(&mut self) {
        self.stop();
    }
}

/// The engines compile alike, so what is compiled and kept for one is good for both.
fn cache(settings: &SandboxSettings, engine: &Engine) -> Result<Option<Arc<Cache>>, SandboxError> {
    let Some(folder) = &settings.cache else { return Ok(None) };
    let key = settings.cache_key.as_deref();
    Cache::open(folder, key, engine, settings.cache_unused).map(Arc::new).map(Some)
}

/// The threads that run guests.
fn threads(settings: &SandboxSettings) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    settings.guest_threads.unwrap_or_else(cores)
}

fn runtime(threads: usize) -> Result<Runtime, SandboxError> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(LOADING_THREADS)
        .thread_name(NAME)
        .enable_all()
        .build()
        .map_err(|error| SandboxError::Thread(NAME, error))
}
