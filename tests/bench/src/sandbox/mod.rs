//! One message through the sandbox, beside a bare loop on the same engine and beside no sandbox at all.

mod bare;
mod languages;
mod latency;
mod limits;
mod peer;
mod threads;
mod throughput;

use std::sync::Arc;

use anyhow::Result;
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, LoadedVersion, Sandbox, SandboxSettings};
use tokio::runtime::{Builder, Runtime};

use self::bare::Bare;
use crate::guests::Guest;
use crate::options::Options;
use crate::report::Line;

/// The most that the product's call may cost beside the bare loop.
const MOST_OVER_BARE: f64 = 1.25;

/// What is called.
struct Called {
    guest: Guest,
    bare: Arc<Bare>,
    sandbox: Sandbox,
    /// As long as someone holds it, the handler is loaded.
    _handler: Arc<LoadedHandler>,
    version: Arc<LoadedVersion>,
}

impl Called {
    async fn load(guest: Guest) -> Result<Arc<Self>> {
        let component = guest.component()?;
        let sandbox = Sandbox::new(SandboxSettings::default())?;
        let mut spec = HandlerSpec::new("bench/sandbox", &component);
        spec.limits.concurrency = SandboxSettings::default().pool_slots;
        let handler = sandbox.load(spec).await?;
        let (bare, version) = (Bare::new(&component)?, handler.current());
        Ok(Arc::new(Self { guest, bare, sandbox, _handler: handler, version }))
    }

    /// What the fresh instance costs above a call without a sandbox, in microseconds: the design's figure.
    fn over_native(&self) -> f64 {
        match self.guest {
            Guest::Wasip2 => 13.0,
            Guest::WithoutWasi => 8.0,
        }
    }

    fn name(&self, what: &str) -> String {
        format!("sandbox, {}: {what}", self.guest.label())
    }
}

/// The host's two runtimes: for everything that must stay on time, and for guests. The sandbox brings the second
/// itself; the bare loop has this one.
struct Runtimes {
    io: Runtime,
    guests: Runtime,
}

impl Runtimes {
    fn new() -> Result<Self> {
        let io = Builder::new_multi_thread().thread_name("bench-io").enable_all().build()?;
        let guests = Builder::new_multi_thread().thread_name("bench-guest").enable_all().build()?;
        Ok(Self { io, guests })
    }
}

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let runtimes = Runtimes::new()?;
    let mut lines = Vec::new();
    for guest in [Guest::Wasip2, Guest::WithoutWasi] {
        let called = runtimes.io.block_on(Called::load(guest))?;
        lines.extend(latency::run(&runtimes, &called, options)?);
        lines.extend(throughput::run(&runtimes, &called, options)?);
        if guest == Guest::Wasip2 {
            lines.extend(peer::run(&runtimes, &called, options)?);
        }
        called.sandbox.shutdown();
    }
    lines.extend(threads::run(&runtimes, options)?);
    lines.extend(limits::run(&runtimes, options)?);
    lines.extend(languages::run(&runtimes, options)?);
    runtimes.guests.shutdown_background();
    runtimes.io.shutdown_background();
    Ok(lines)
}
