//! The pump on the embedded broker.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pumphouse_broker::Broker;
use pumphouse_contract::Clock;
use pumphouse_contract::ports::Handler;
use pumphouse_pump::SystemClock;
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};

use crate::guests::Guest;
use crate::io;
use crate::measure::{CPU, RATE, Sample, Series};
use crate::message;
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::{Line, Target};

const QUEUE: &str = "bench";
const ROUNDS: usize = 10;
const IN_MEMORY: usize = 200_000;
const DURABLE: usize = 50_000;
/// Publishing at once: how many share a commit.
const PUBLISHERS: usize = 256;
/// Calls at once.
const CONCURRENCY: usize = 256;
/// Messages per second in memory with a fresh sandbox for each, on two cores.
const LEAST_RATE: f64 = 50_000.0;
/// The same as processor time, in microseconds, which holds on a machine that others use too.
const MOST_CPU: f64 = 40.0;

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let sandbox = Sandbox::new(SandboxSettings::default())?;
    let lines = io::run(measure(&sandbox, options));
    sandbox.shutdown();
    lines
}

async fn measure(sandbox: &Sandbox, options: &Options) -> Result<Vec<Line>> {
    let wasip2 = load(sandbox, Guest::Wasip2).await?;
    let bare = load(sandbox, Guest::WithoutWasi).await?;
    let mut lines = in_memory(options, wasip2.clone(), bare).await?;
    lines.extend(durable(options, wasip2).await?);
    Ok(lines)
}

async fn load(sandbox: &Sandbox, guest: Guest) -> Result<Arc<LoadedHandler>> {
    let mut spec = HandlerSpec::new(format!("bench/{}", guest.label()), guest.component()?);
    spec.limits.concurrency = CONCURRENCY;
    Ok(sandbox.load(spec).await?)
}

async fn in_memory(
    options: &Options,
    wasip2: Arc<LoadedHandler>,
    without_wasi: Arc<LoadedHandler>,
) -> Result<Vec<Line>> {
    let messages = options.scaled(IN_MEMORY);
    let [mut native, mut fresh, mut bare] = [(); 3].map(|()| Series::default());
    for _ in 0..options.scaled(ROUNDS) {
        native.add(drain(Broker::memory(clock()), Arc::new(Native), messages).await?);
        fresh.add(drain(Broker::memory(clock()), wasip2.clone(), messages).await?);
        bare.add(drain(Broker::memory(clock()), without_wasi.clone(), messages).await?);
    }
    Ok(vec![
        Line::alone("pump, memory, native: messages", "/s", &native, RATE),
        Line::alone("pump, memory, native: CPU per message", "µs", &native, CPU),
        Line::beside("pump, memory, wasip2: messages", "/s", (&fresh, &native), RATE)
            .target(Target::AtLeast(LEAST_RATE)),
        Line::beside("pump, memory, wasip2: CPU per message", "µs", (&fresh, &native), CPU)
            .target(Target::AtMost(MOST_CPU)),
        Line::beside("pump, memory, without WASI: messages", "/s", (&bare, &native), RATE),
        Line::beside("pump, memory, without WASI: CPU per message", "µs", (&bare, &native), CPU),
    ])
}

async fn durable(options: &Options, wasip2: Arc<LoadedHandler>) -> Result<Vec<Line>> {
    let messages = options.scaled(DURABLE);
    let [mut native, mut fresh] = [(); 2].map(|()| Series::default());
    for _ in 0..options.scaled(ROUNDS) {
        native.add(drain_durable(Arc::new(Native), messages).await?);
        fresh.add(drain_durable(wasip2.clone(), messages).await?);
    }
    Ok(vec![
        Line::alone("pump, durable, native: messages", "/s", &native, RATE),
        Line::alone("pump, durable, native: CPU per message", "µs", &native, CPU),
        Line::beside("pump, durable, wasip2: messages", "/s", (&fresh, &native), RATE),
        Line::beside("pump, durable, wasip2: CPU per message", "µs", (&fresh, &native), CPU),
    ])
}

/// On the disk that holds this repository's build: a temporary folder may be memory.
async fn drain_durable(handler: Arc<dyn Handler>, messages: usize) -> Result<Sample> {
    let built = std::env::current_exe()?;
    let disk = built.parent().unwrap_or(Path::new("."));
    let folder = tempfile::tempdir_in(disk).context("making a state directory")?;
    drain(Broker::open(folder.path(), clock()).await?, handler, messages).await
}

/// Publishes, then pumps until nothing is left; the second is measured.
async fn drain(broker: Broker, handler: Arc<dyn Handler>, messages: usize) -> Result<Sample> {
    broker.create(QUEUE).await?;
    let sink = broker.sink(QUEUE)?;
    let published = stream::iter(0..messages).map(|_| sink.publish(message::outgoing()));
    published.buffer_unordered(PUBLISHERS).try_for_each(|_| async { Ok(()) }).await?;
    let source = broker.source(QUEUE)?;
    let pumping = Pumping { source, handler, clock: clock(), concurrency: CONCURRENCY, messages };
    let sample = pumping.run().await?;
    broker.close().await;
    Ok(sample)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
