//! The engine alone, with the settings that the product has: what a call can't be cheaper than.

use std::path::Path;
use std::thread;
use std::time::Duration;

use pumphouse_contract::ports::Invocation;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result, Store,
    StoreLimits, StoreLimitsBuilder, UpdateDeadline,
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod wit {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "handler",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

mod wit_async {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "handler",
        ownership: Borrowing { duplicate_if_necessary: true },
        exports: { default: async },
    });
}

const KEEP_RESIDENT: usize = 2 << 20;

pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

pub(crate) struct Bare {
    engine: Engine,
    sync: wit::HandlerPre<State>,
    asynchronous: wit_async::HandlerPre<State>,
}

pub(crate) struct Reused {
    store: Store<State>,
    handler: wit::Handler,
}

impl Bare {
    pub(crate) fn new(component: &Path) -> Result<Self> {
        let engine = engine()?;
        let component = Component::from_file(&engine, component)?;
        let mut sync = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut sync)?;
        let mut asynchronous = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut asynchronous)?;
        let ticking = engine.weak();
        thread::spawn(move || {
            while let Some(engine) = ticking.upgrade() {
                engine.increment_epoch();
                thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(Self {
            sync: wit::HandlerPre::new(sync.instantiate_pre(&component)?)?,
            asynchronous: wit_async::HandlerPre::new(asynchronous.instantiate_pre(&component)?)?,
            engine,
        })
    }

    pub(crate) fn fresh(&self, call: &Invocation) -> Result<()> {
        let mut store = self.store();
        let handler = self.sync.instantiate(&mut store)?;
        answer(&handler, &mut store, call)
    }

    pub(crate) async fn fresh_async(&self, call: &Invocation) -> Result<()> {
        let mut store = self.store();
        store.epoch_deadline_callback(|_| {
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        let handler = self.asynchronous.instantiate_async(&mut store).await?;
        let headers = headers(call);
        let message = wit_async::pumphouse::handler::types::Message {
            id: &call.message.id,
            source: &call.source,
            delivery_count: call.count.0,
            headers: &headers,
            content_type: None,
            ordering_key: None,
            published_at: None,
            body: &call.message.body,
        };
        handler.pumphouse_handler_incoming_handler().call_handle(&mut store, message).await?;
        Ok(())
    }

    pub(crate) fn reused(&self) -> Result<Reused> {
        let mut store = self.store();
        let handler = self.sync.instantiate(&mut store)?;
        Ok(Reused { store, handler })
    }

    fn store(&self) -> Store<State> {
        let limits = StoreLimitsBuilder::new().memory_size(64 << 20).table_elements(20_000);
        let state = State {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
            limits: limits.build(),
        };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Continue(1)));
        store.set_hostcall_fuel(1 << 20);
        store
    }
}

impl Reused {
    pub(crate) fn call(&mut self, call: &Invocation) -> Result<()> {
        answer(&self.handler, &mut self.store, call)
    }
}

fn answer(handler: &wit::Handler, store: &mut Store<State>, call: &Invocation) -> Result<()> {
    let headers = headers(call);
    let message = wit::pumphouse::handler::types::Message {
        id: &call.message.id,
        source: &call.source,
        delivery_count: call.count.0,
        headers: &headers,
        content_type: None,
        ordering_key: None,
        published_at: None,
        body: &call.message.body,
    };
    handler.pumphouse_handler_incoming_handler().call_handle(store, message)?;
    Ok(())
}

fn headers(call: &Invocation) -> Vec<(&str, &str)> {
    let headers = call.message.headers.iter();
    headers.map(|(name, value)| (name, value.as_str().unwrap_or_default())).collect()
}

fn engine() -> Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT)
        .max_memory_size(64 << 20);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}
