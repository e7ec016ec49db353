//! What an honest neighbour waits for beside endless guests, compared with the same beside honest ones that are as
//! busy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pumphouse_contract::Outcome;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::guests::component;
use crate::io;
use crate::measure::{Sample, Series, WALL};
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

/// Computes as many turns as its message says, and acknowledges.
const BUSY: &str = "hostile_busy.wasm";
const ENDLESS: &str = "hostile_loop.wasm";
/// How many calls the neighbour makes at once.
const NEIGHBOURS: [usize; 4] = [1, 8, 32, 128];
const ROUNDS: usize = 10;
/// Calls of a round.
const CALLS: usize = 400;
/// What an honest call computes, where nobody else does.
const HONEST: Duration = Duration::from_millis(1);
/// Until neighbours compute, and until they have left.
const SETTLING: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(10);
/// The most that the median and the 99th percentile may be beside those next to honest neighbours.
const MOST_AT_MEDIAN: f64 = 1.5;
const MOST_AT_TAIL: f64 = 2.0;

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let sandbox = Sandbox::new(SandboxSettings::default())?;
    let lines = io::run(measure(&sandbox, options));
    sandbox.shutdown();
    lines
}

async fn measure(sandbox: &Sandbox, options: &Options) -> Result<Vec<Line>> {
    let bench = Bench::load(sandbox).await?;
    let mut lines = Vec::new();
    for neighbours in NEIGHBOURS {
        lines.extend(bench.beside(neighbours, options).await?);
    }
    Ok(lines)
}

/// Handlers of three tenants.
struct Bench<'a> {
    sandbox: &'a Sandbox,
    honest: Arc<LoadedHandler>,
    endless: Arc<LoadedHandler>,
    busy: Arc<LoadedHandler>,
    /// A message that takes [`HONEST`].
    work: Invocation,
}

impl<'a> Bench<'a> {
    async fn load(sandbox: &'a Sandbox) -> Result<Self> {
        let load = async |name: &str, guest: &str| {
            let mut spec = HandlerSpec::new(name, component(guest)?);
            spec.limits.concurrency = SandboxSettings::default().pool_slots;
            spec.limits.deadline = Duration::from_secs(600);
            anyhow::Ok(sandbox.load(spec).await?)
        };
        let honest = load("honest/busy", BUSY).await?;
        let work = calibrate(&honest).await?;
        let endless = load("hostile/loop", ENDLESS).await?;
        let busy = load("neighbour/busy", BUSY).await?;
        Ok(Self { sandbox, honest, endless, busy, work })
    }

    /// The honest tenant's calls, in turns beside the one neighbour and beside the other.
    async fn beside(&self, neighbours: usize, options: &Options) -> Result<Vec<Line>> {
        let (mut hostile, mut honest) = (Latencies::default(), Latencies::default());
        let calls = options.scaled(CALLS);
        for round in 0..options.scaled(ROUNDS) {
            // A B, B A: neither is always the one that comes first.
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    hostile.add(self.round(&self.endless, neighbours, calls).await?);
                } else {
                    honest.add(self.round(&self.busy, neighbours, calls).await?);
                }
            }
        }
        let name = |what: &str| format!("fairness, beside {neighbours} endless: {what} of 1 ms");
        let pair = |of: fn(&Latencies) -> &Series| (of(&hostile), of(&honest));
        let (middle, tail) = (pair(|it| &it.median), pair(|it| &it.tail));
        Ok(vec![
            Line::beside(name("p50"), "µs", middle, WALL)
                .target(Target::RatioAtMost(MOST_AT_MEDIAN)),
            Line::beside(name("p99"), "µs", tail, WALL).target(Target::RatioAtMost(MOST_AT_TAIL)),
        ])
    }

    async fn round(
        &self,
        neighbour: &Arc<LoadedHandler>,
        neighbours: usize,
        calls: usize,
    ) -> Result<Vec<Duration>> {
        let mut running = JoinSet::new();
        for _ in 0..neighbours {
            let (neighbour, work) = (neighbour.clone(), self.work.clone());
            running.spawn(async move {
                loop {
                    neighbour.begin().call(work.clone()).await;
                }
            });
        }
        sleep(SETTLING).await;
        let mut took = Vec::with_capacity(calls);
        for _ in 0..calls {
            took.push(call(&self.honest, &self.work).await?);
        }
        running.shutdown().await;
        timeout(PATIENCE, self.idle()).await?;
        Ok(took)
    }

    async fn idle(&self) {
        while self.sandbox.tenants().iter().any(|tenant| tenant.account.instances > 0) {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn call(handler: &LoadedHandler, work: &Invocation) -> Result<Duration> {
    let began = Instant::now();
    let ended = handler.begin().call(work.clone()).await;
    ensure!(ended.result == Ok(Outcome::Ack), "the busy guest did not acknowledge");
    Ok(began.elapsed())
}

/// A message whose call computes for [`HONEST`] on this machine.
async fn calibrate(handler: &LoadedHandler) -> Result<Invocation> {
    const TURNS: u32 = 1_000_000;
    let mut least = Duration::MAX;
    for _ in 0..20 {
        least = least.min(call(handler, &message::with_body(&TURNS.to_string())).await?);
    }
    let turns = f64::from(TURNS) * HONEST.as_secs_f64() / least.as_secs_f64();
    Ok(message::with_body(&format!("{turns:.0}")))
}

/// The median and the 99th percentile of each round.
#[derive(Debug, Default)]
struct Latencies {
    median: Series,
    tail: Series,
}

impl Latencies {
    fn add(&mut self, mut took: Vec<Duration>) {
        took.sort_unstable();
        let at = |part: usize| {
            let rank = (took.len() * part).div_ceil(100).saturating_sub(1);
            let wall = took.get(rank).map_or(f64::NAN, |took| took.as_secs_f64() * 1e6);
            Sample { wall, cpu: f64::NAN }
        };
        self.median.add(at(50));
        self.tail.add(at(99));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_calls_of_a_round() {
        let mut latencies = Latencies::default();
        latencies.add((1..=400).rev().map(Duration::from_micros).collect());
        assert!((latencies.median.median(WALL) - 200.0).abs() < 1e-9);
        assert!((latencies.tail.median(WALL) - 396.0).abs() < 1e-9);
    }
}
