//! Two threads of guests beside one: what a second core is worth.

use std::sync::Arc;

use anyhow::Result;
use pumphouse_contract::ports::Version;
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};

use futures_util::future::try_join_all;

use super::Runtimes;
use super::latency::acknowledged;
use crate::guests::Guest;
use crate::measure::{RATE, Sample, Series, Stopwatch};
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

const ROUNDS: usize = 40;
const CALLERS: usize = 32;
const CALLS: usize = 100;
/// The least that two are to do of what one does.
const LEAST: f64 = 1.1;

pub(super) fn run(runtimes: &Runtimes, options: &Options) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for guest in [Guest::Wasip2, Guest::WithoutWasi] {
        let rounds = runtimes.io.spawn(measure(guest, options.scaled(ROUNDS)));
        let (two, one) = runtimes.io.block_on(rounds)??;
        let name = format!("sandbox, {}: two threads, beside one", guest.label());
        let line = Line::beside(name, "/s", (&two, &one), RATE);
        lines.push(line.target(Target::RatioAtLeast(LEAST)));
    }
    Ok(lines)
}

async fn measure(guest: Guest, rounds: usize) -> Result<(Series, Series)> {
    let (sandbox_of_one, one) = load(guest, 1).await?;
    let (sandbox_of_two, two) = load(guest, 2).await?;
    let (mut of_two, mut of_one) = (Series::default(), Series::default());
    for _ in 0..rounds {
        of_one.add(round(&one).await?);
        of_two.add(round(&two).await?);
    }
    sandbox_of_one.shutdown();
    sandbox_of_two.shutdown();
    Ok((of_two, of_one))
}

async fn load(guest: Guest, threads: usize) -> Result<(Sandbox, Arc<LoadedHandler>)> {
    let settings = SandboxSettings { guest_threads: Some(threads), ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings)?;
    let mut spec = HandlerSpec::new("bench/threads", guest.component()?);
    spec.limits.concurrency = CALLERS;
    let handler = sandbox.load(spec).await?;
    Ok((sandbox, handler))
}

async fn round(handler: &Arc<LoadedHandler>) -> Result<Sample> {
    let watch = Stopwatch::start();
    let callers = (0..CALLERS).map(|_| {
        let version = handler.current();
        tokio::spawn(async move {
            let invocation = message::invocation();
            for _ in 0..CALLS {
                acknowledged(&version.call(invocation.clone()).await.result)?;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(watch.stop(CALLERS * CALLS))
}
