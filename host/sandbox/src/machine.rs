//! What all handlers of a sandbox share.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use wasmtime::Engine;

use crate::cache::Cache;
use crate::compiler::Compiler;
use crate::engine;
use crate::errors::SandboxError;
use crate::settings::SandboxSettings;
use crate::tenant::Tenants;
use crate::ticker::Ticker;

/// Threads that load components: reading, hashing, linking. Compiling has one of its own.
const LOADING_THREADS: usize = 4;

const NAME: &str = "pumphouse-guest";

/// The engine, the guests' runtime, the pool's places, the compiler and its cache.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) compiler: Compiler,
    pub(crate) cache: Option<Cache>,
    pub(crate) tenants: Tenants,
    /// As many as the pool has: who has one never finds the pool exhausted.
    pub(crate) slots: Semaphore,
    pub(crate) pool_slots: usize,
    pub(crate) stack: usize,
    pub(crate) max_memory: u64,
    pub(crate) max_table_elements: u64,
    pub(crate) max_component: u64,
    guests: Handle,
    runtime: Mutex<Option<Runtime>>,
}

impl Machine {
    pub(crate) fn new(settings: &SandboxSettings) -> Result<Self, SandboxError> {
        let engine = engine::lean(settings)?;
        let cache = settings.cache.as_deref().map(|folder| Cache::open(folder, &engine));
        let cache = cache.transpose()?;
        let (ticker, compiler) = (Ticker::start(&engine)?, Compiler::start(&engine)?);
        // Last, since it may not be dropped where the caller is: nothing may fail after it.
        let runtime = runtime(settings.guest_threads)?;
        Ok(Self {
            ticker,
            compiler,
            cache,
            tenants: Tenants::default(),
            slots: Semaphore::new(settings.pool_slots.min(Semaphore::MAX_PERMITS)),
            pool_slots: settings.pool_slots,
            stack: settings.stack,
            max_memory: settings.max_memory,
            max_table_elements: settings.max_table_elements,
            max_component: settings.max_component,
            guests: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            engine,
        })
    }

    /// Where guests run: a runtime of their own, so that computing guests never delay transports and timers.
    pub(crate) fn guests(&self) -> &Handle {
        &self.guests
    }

    /// Cuts every call. Does not wait: a guest gives its thread back within a tick.
    pub(crate) fn stop(&self) {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Machine {
    /// A runtime may not simply be dropped where the last handle goes: that may be one of its own threads.
    fn drop(&mut self) {
        self.stop();
    }
}

fn runtime(threads: Option<usize>) -> Result<Runtime, SandboxError> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(threads.unwrap_or_else(cores))
        .max_blocking_threads(LOADING_THREADS)
        .thread_name(NAME)
        .enable_all()
        .build()
        .map_err(|error| SandboxError::Thread(NAME, error))
}
