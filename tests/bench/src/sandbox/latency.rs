//! One call after another: how long each takes.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use pumphouse_contract::Outcome;
use pumphouse_contract::ports::{Invocation, Version};
use tokio::runtime::Handle;

use super::{Called, MOST_OVER_BARE, Runtimes};
use crate::measure::{CPU, Series, Stopwatch, WALL};
use crate::message;
use crate::native::Native;
use crate::options::Options;
use crate::report::{Line, Target};

/// Short rounds, so that most are not interrupted, and enough of them that those that are don't matter.
const ROUNDS: usize = 200;
const CALLS: usize = 200;

/// One round of a call.
macro_rules! timed {
    ($call:expr) => {{
        let watch = Stopwatch::start();
        for _ in 0..CALLS {
            $call.await?;
        }
        watch.stop(CALLS)
    }};
}

#[derive(Default)]
struct Measured {
    native: Series,
    reused: Series,
    bare: Series,
    product: Series,
    bare_there: Series,
    product_there: Series,
}

pub(super) fn run(
    runtimes: &Runtimes,
    called: &Arc<Called>,
    options: &Options,
) -> Result<Vec<Line>> {
    let rounds = options.scaled(ROUNDS);
    let guests = runtimes.guests.handle().clone();
    let here = runtimes.guests.spawn(in_place(called.clone(), rounds));
    let measured = runtimes.io.block_on(here)??;
    let there = runtimes.io.spawn(elsewhere(called.clone(), guests, rounds, measured));
    let measured = runtimes.io.block_on(there)??;
    Ok(lines(called, &measured))
}

/// On the caller's own task.
async fn in_place(called: Arc<Called>, rounds: usize) -> Result<Measured> {
    let (mut measured, invocation) = (Measured::default(), message::invocation());
    let mut reused = called.bare.reusable().await?;
    for _ in 0..rounds {
        measured.native.add(timed!(native(&invocation)));
        measured.reused.add(timed!(reused.call(&invocation)));
        measured.bare.add(timed!(called.bare.call(invocation.clone())));
        measured.product.add(timed!(product(&called, &invocation)));
    }
    Ok(measured)
}

/// On the guests' runtime, as a pump calls: there and back are two hand-overs between threads.
async fn elsewhere(
    called: Arc<Called>,
    guests: Handle,
    rounds: usize,
    mut measured: Measured,
) -> Result<Measured> {
    let invocation = message::invocation();
    for _ in 0..rounds {
        measured.bare_there.add(timed!(bare_there(&called, &guests, &invocation)));
        measured.product_there.add(timed!(product_there(&called, &invocation)));
    }
    Ok(measured)
}

async fn native(invocation: &Invocation) -> Result<()> {
    let native: &dyn Version = &Native;
    acknowledged(&native.call(invocation.clone()).await.result)
}

async fn product(called: &Called, invocation: &Invocation) -> Result<()> {
    acknowledged(&called.version.call_here(invocation.clone()).await.result)
}

pub(super) async fn bare_there(
    called: &Arc<Called>,
    guests: &Handle,
    invocation: &Invocation,
) -> Result<()> {
    let (called, invocation) = (called.clone(), invocation.clone());
    guests.spawn(async move { called.bare.call(invocation).await }).await?
}

pub(super) async fn product_there(called: &Called, invocation: &Invocation) -> Result<()> {
    let version: &dyn Version = &*called.version;
    acknowledged(&version.call(invocation.clone()).await.result)
}

/// What is not acknowledged was not measured as what it was meant to be.
pub(super) fn acknowledged(result: &Result<Outcome, pumphouse_contract::Fault>) -> Result<()> {
    let outcome = result.as_ref().map_err(|fault| anyhow::anyhow!("{}", fault.detail));
    ensure!(outcome.context("the handler gave no answer")? == &Outcome::Ack, "no acknowledgement");
    Ok(())
}

fn lines(called: &Called, measured: &Measured) -> Vec<Line> {
    let Measured { native, reused, bare, product, bare_there, product_there } = measured;
    let beside = |what: &str, series, figure| Line::beside(called.name(what), "µs", series, figure);
    vec![
        Line::alone(called.name("native call"), "µs", native, WALL),
        Line::alone(called.name("bare, reused instance"), "µs", reused, WALL),
        beside("fresh, beside bare", (product, bare), WALL)
            .target(Target::RatioAtMost(MOST_OVER_BARE)),
        beside("fresh, beside bare, CPU", (product, bare), CPU),
        beside("fresh, beside native", (product, native), WALL)
            .target(Target::AboutOver(called.over_native())),
        beside("fresh, on guests' threads, beside bare", (product_there, bare_there), WALL)
            .target(Target::RatioAtMost(MOST_OVER_BARE)),
    ]
}
