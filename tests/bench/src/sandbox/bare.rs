//! What the sandbox is compared with: the least that a fresh instance for every message takes with this engine.
//!
//! No limits, no deadline, no log, no account of what was used; the settings of the engine are the sandbox's own
//! (`host/sandbox/src/engine.rs`), copied, so that the two differ in nothing but what the product adds.

use std::future::poll_fn;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use pumphouse_contract::ports::Invocation;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Store,
    StoreLimits, StoreLimitsBuilder, UpdateDeadline,
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use self::bindings::HandlerPre;
use self::bindings::pumphouse::handler::types as wit;

mod bindings {
    #![allow(missing_docs, unreachable_pub, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "handler",
        ownership: Borrowing { duplicate_if_necessary: true },
        imports: { default: trappable },
        exports: { default: async },
    });
}

const MIB: usize = 1024 * 1024;
const SLOTS: u32 = 512;
const RESIDENT: usize = 2 * MIB;
const STACK: usize = 512 * 1024;
const TICK: Duration = Duration::from_millis(1);
const DEADLINE: Duration = Duration::from_secs(30);

/// Which of the product's limits the loop has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Interruption at every tick.
    pub(crate) epochs: bool,
    /// A bound on memory and tables.
    pub(crate) memory: bool,
    /// A bound on what is copied from the guest.
    pub(crate) result: bool,
    /// A timer around the call.
    pub(crate) deadline: bool,
    /// Two readings of clocks.
    pub(crate) meter: bool,
}

/// A loop that others can share a thread with: what the product is measured against.
const YIELDING: Switches =
    Switches { epochs: true, memory: false, result: false, deadline: false, meter: false };

/// An engine with a component that can be called. It ticks as long as this lives.
pub(crate) struct Bare {
    pre: HandlerPre<State>,
    switches: Switches,
    _ticking: Ticking,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Bare {
    pub(crate) fn new(component: &Path) -> Result<Arc<Self>> {
        Self::with(component, YIELDING)
    }

    /// With other limits than a loop must have.
    pub(crate) fn with(component: &Path, switches: Switches) -> Result<Arc<Self>> {
        Self::load(component, switches).map_err(|error| anyhow!("{error:#}"))
    }

    fn load(component: &Path, switches: Switches) -> wasmtime::Result<Arc<Self>> {
        let engine = engine(switches.epochs)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        let component = Component::from_file(&engine, component)?;
        let pre = HandlerPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Arc::new(Self { pre, switches, _ticking: Ticking::start(engine) }))
    }

    /// Calls the handler in a fresh instance.
    pub(crate) async fn call(&self, invocation: Invocation) -> Result<()> {
        if self.switches.meter {
            return metered(self.within(&invocation)).await;
        }
        self.within(&invocation).await
    }

    async fn within(&self, invocation: &Invocation) -> Result<()> {
        let call = async { self.reusable().await?.call(invocation).await };
        if self.switches.deadline {
            return tokio::time::timeout(DEADLINE, call).await?;
        }
        call.await
    }

    /// An instance that is called more than once.
    pub(crate) async fn reusable(&self) -> Result<Reused> {
        let mut store = self.store();
        let instance = self.pre.instantiate_async(&mut store).await;
        let instance = instance.map_err(|error| anyhow!("{error:#}"))?;
        Ok(Reused { store, instance })
    }

    fn store(&self) -> Store<State> {
        let limits = StoreLimitsBuilder::new().memory_size(64 * MIB).table_elements(20_000);
        let state = State {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
            limits: limits.build(),
        };
        let mut store = Store::new(self.pre.engine(), state);
        if self.switches.epochs {
            store.set_epoch_deadline(1);
            store.epoch_deadline_callback(|_| {
                Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
            });
        }
        if self.switches.memory {
            store.limiter(|state| &mut state.limits);
        }
        if self.switches.result {
            store.set_hostcall_fuel(MIB);
        }
        store
    }
}

pub(crate) struct Reused {
    store: Store<State>,
    instance: bindings::Handler,
}

impl Reused {
    pub(crate) async fn call(&mut self, invocation: &Invocation) -> Result<()> {
        let headers = headers(invocation);
        let message = message(invocation, &headers);
        let handler = self.instance.pumphouse_handler_incoming_handler();
        match handler.call_handle(&mut self.store, message).await {
            Ok(wit::Outcome::Ack) => Ok(()),
            Ok(wit::Outcome::Defer(_) | wit::Outcome::Reject(_)) => {
                Err(anyhow!("no acknowledgement"))
            }
            Err(error) => Err(anyhow!("{error:#}")),
        }
    }
}

fn headers(invocation: &Invocation) -> Vec<(&str, &str)> {
    let headers = invocation.message.headers.iter();
    headers.map(|(name, value)| (name, value.as_str().unwrap_or_default())).collect()
}

fn message<'a>(invocation: &'a Invocation, headers: &'a [(&'a str, &'a str)]) -> wit::Message<'a> {
    let message = &*invocation.message;
    wit::Message {
        id: &message.id,
        source: &invocation.source,
        delivery_count: invocation.count.0,
        headers,
        content_type: message.content_type.as_deref(),
        ordering_key: message.ordering_key.as_deref(),
        published_at: message.published_at.map(|time| time.0),
        body: &message.body,
    }
}

/// With the clock read before and after each turn, as an account of it takes.
async fn metered<T>(call: impl Future<Output = T>) -> T {
    let (mut call, mut used) = (pin!(call), Duration::ZERO);
    let answer = poll_fn(|cx| {
        let began = Instant::now();
        let polled = call.as_mut().poll(cx);
        used += began.elapsed();
        polled
    });
    let answer = answer.await;
    black_box(used);
    answer
}

fn engine(epochs: bool) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(epochs)
        .concurrency_support(false)
        .memory_init_cow(true)
        .wasm_memory64(false)
        .max_wasm_stack(STACK)
        .async_stack_size(STACK + MIB)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    Engine::new(&config)
}

fn pool() -> PoolingAllocationConfig {
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    let resident = if scan { RESIDENT } else { 0 };
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(if scan { Enabled::Yes } else { Enabled::No })
        .linear_memory_keep_resident(resident)
        .table_keep_resident(resident)
        .max_memory_size(64 * MIB)
        .table_elements(20_000)
        .max_memories_per_component(2)
        .max_tables_per_component(8)
        .max_core_instances_per_component(16)
        .total_component_instances(SLOTS)
        .total_stacks(SLOTS)
        .total_memories(SLOTS * 2)
        .total_tables(SLOTS * 8)
        .total_core_instances(SLOTS * 16);
    pool
}

/// A thread that ticks.
struct Ticking(Arc<AtomicBool>);

impl Ticking {
    fn start(engine: Engine) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = stopped.clone();
        thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                engine.increment_epoch();
            }
        });
        Self(stopped)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
