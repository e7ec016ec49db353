//! The host's side of one instance: what its imports reach.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::bindings::wasi::config::store;
use crate::bindings::wasi::logging::logging;
use crate::journal::{Journal, Level, Stream};
use crate::limits::Limiter;
use crate::meter;
use crate::settings::{Grants, Limits};

/// Handles that a guest may hold at once: streams, pollables. Each costs the host memory.
const MOST_HANDLES: usize = 1_024;
const MOST_RANDOM_BYTES: u64 = 64 * 1024;
const WRITE_CHUNK: usize = 64 * 1024;

/// The deadline passed while the guest was computing.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the deadline passed")]
pub(crate) struct DeadlinePassed;

/// The data of a store.
pub(crate) struct Guest {
    /// Made at the first call that needs it: many handlers never make one.
    wasi: Option<Box<WasiCtx>>,
    table: ResourceTable,
    config: Option<Arc<BTreeMap<String, String>>>,
    deadline: Instant,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Arc<Journal>,
}

impl Guest {
    pub(crate) fn new(
        limits: &Limits,
        deadline: Instant,
        journal: Journal,
        config: Option<Arc<BTreeMap<String, String>>>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_HANDLES);
        Self {
            wasi: None,
            table,
            config,
            deadline,
            limiter: Limiter::new(limits),
            journal: Arc::new(journal),
        }
    }

    /// A store for one call: limited, interrupted at every tick, cut at the deadline.
    pub(crate) fn into_store(self, engine: &Engine, limits: &Limits) -> Store<Self> {
        let mut store = Store::new(engine, self);
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(usize::try_from(limits.result_bytes).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            if Instant::now() >= store.data().deadline {
                return Err(DeadlinePassed.into());
            }
            meter::note_yield();
            // Not the engine's own yield: it would wake the task at once, before timers and I/O had a turn.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        store
    }
}

/// What a handler can reach, by its grants. WASI is there for compiled guests that import it whatever they do,
/// and gives nothing: no variables, arguments, folders or network.
pub(crate) fn linker(engine: &Engine, grants: &Grants) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    if grants.logging {
        logging::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    }
    if grants.config.is_some() {
        store::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    }
    Ok(linker)
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self.wasi.get_or_insert_with(|| Box::new(sealed(&self.journal)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

fn sealed(journal: &Arc<Journal>) -> WasiCtx {
    WasiCtxBuilder::new()
        .stdout(Printer { journal: journal.clone(), stream: Stream::Out })
        .stderr(Printer { journal: journal.clone(), stream: Stream::Err })
        .max_random_size(MOST_RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

impl logging::Host for Guest {
    fn log(
        &mut self,
        level: logging::Level,
        context: String,
        message: String,
    ) -> wasmtime::Result<()> {
        let level = match level {
            logging::Level::Trace => Level::Trace,
            logging::Level::Debug => Level::Debug,
            logging::Level::Info => Level::Info,
            logging::Level::Warn => Level::Warn,
            logging::Level::Error => Level::Error,
            logging::Level::Critical => Level::Critical,
        };
        Ok(self.journal.log(level, &context, &message)?)
    }
}

impl store::Host for Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, store::Error>> {
        Ok(Ok(self.config.as_ref().and_then(|config| config.get(&key).cloned())))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, store::Error>> {
        let all = self.config.iter().flat_map(|config| config.iter());
        Ok(Ok(all.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }
}

/// A standard stream: it takes everything at once and keeps little.
#[derive(Clone)]
struct Printer {
    journal: Arc<Journal>,
    stream: Stream,
}

impl IsTerminal for Printer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printer {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Asked for by later versions of WASI alone, which are not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Printer {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.journal.print(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_CHUNK)
    }
}

/// `Pollable` is declared with `async_trait`; this is what that makes of `async fn ready`.
impl Pollable for Printer {
    fn ready<'a, 'b>(&'a mut self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}
