//! The host's side of one instance: what its imports reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

use crate::bindings::wasi::config::store;
use crate::bindings::wasi::logging::logging;
use crate::clocks::Coarse;
use crate::http::{self, HttpCall};
use crate::journal::{Journal, Level, Speaker, Stream};
use crate::limits::Limiter;
use crate::meter;
use crate::secrets;
use crate::settings::{Grants, Limits};
use crate::worlds::{World, messaging};

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
    /// Made at the first request.
    http: Option<Box<HttpCall>>,
    pub(crate) table: ResourceTable,
    /// What the guest holds of messages of `wasi:messaging`, in bytes.
    pub(crate) held: usize,
    clocks: Coarse,
    deadline: Instant,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Arc<Journal>,
    pub(crate) tally: Tally,
}

/// What passes between a guest and the host in one call, beside its message, its answer and its log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) host_calls: u64,
    /// What the guest was given of its settings and secrets, in bytes.
    pub(crate) bytes_in: u64,
}

impl Guest {
    pub(crate) fn new(limits: &Limits, deadline: Instant, journal: Journal) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_HANDLES);
        Self {
            wasi: None,
            http: None,
            table,
            held: 0,
            clocks: Coarse::default(),
            deadline,
            limiter: Limiter::new(limits),
            journal: Arc::new(journal),
            tally: Tally::default(),
        }
    }

    /// What a call of the guest to the host reaches. It is counted.
    pub(crate) fn called(&mut self) -> &mut Self {
        self.tally.host_calls += 1;
        self
    }

    /// Its clocks step by so much.
    pub(crate) fn with_clocks(mut self, step: Duration) -> Self {
        self.clocks = Coarse::new(step);
        self
    }

    /// The next message of an instance that has answered one. Its memory's limit holds over its life.
    pub(crate) fn renew(&mut self, speaker: Speaker, deadline: Instant, limits: &Limits) {
        self.deadline = deadline;
        self.tally = Tally::default();
        self.http = None;
        self.limiter.renew();
        self.journal.renew(speaker, limits);
    }

    /// What the guest sent and received through the host's services, in bytes.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.http.as_ref().map_or((0, 0), |http| http.traffic())
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
pub(crate) fn linker(
    engine: &Engine,
    grants: &Grants,
    world: World,
) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    if grants.logging {
        logging::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, Guest::called)?;
    }
    if grants.config.is_some() {
        store::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, Guest::called)?;
    }
    if !grants.secrets.is_empty() {
        secrets::store::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, Guest::called)?;
    }
    if grants.http.is_some() {
        http::add_to_linker(&mut linker)?;
    }
    if world == World::Messaging {
        messaging::types::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, Guest::called)?;
    }
    Ok(linker)
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.tally.host_calls += 1;
        let ctx = self.wasi.get_or_insert_with(|| Box::new(sealed(&self.journal, self.clocks)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.tally.host_calls += 1;
        let (journal, deadline) = (&self.journal, self.deadline);
        let http = self.http.get_or_insert_with(|| {
            let reach = journal.services().http.clone();
            Box::new(HttpCall::new(reach, &journal.speaker(), deadline))
        });
        http.view(&mut self.table)
    }
}

fn sealed(journal: &Arc<Journal>, clocks: Coarse) -> WasiCtx {
    WasiCtxBuilder::new()
        .monotonic_clock(clocks)
        .wall_clock(clocks)
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
        let config = &self.journal.services().config;
        let value = config.as_ref().and_then(|config| config.get(&key).cloned());
        self.tally.bytes_in += value.as_ref().map_or(0, String::len) as u64;
        Ok(Ok(value))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, store::Error>> {
        let all = self.journal.services().config.iter().flatten();
        let all: Vec<_> = all.map(|(name, value)| (name.clone(), value.clone())).collect();
        let bytes = all.iter().map(|(name, value)| name.len() + value.len());
        self.tally.bytes_in += bytes.sum::<usize>() as u64;
        Ok(Ok(all))
    }
}

impl secrets::store::Host for Guest {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        let secret = self.journal.services().secrets.get(&name);
        let secret = secret.map(|secret| secret.expose().to_owned());
        self.tally.bytes_in += secret.as_ref().map_or(0, String::len) as u64;
        Ok(secret)
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
