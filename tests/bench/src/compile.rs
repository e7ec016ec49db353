//! A neighbour's calls while ten components are compiled, beside the same calls without.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pumphouse_contract::Outcome;
use pumphouse_contract::ports::Version;
use pumphouse_sandbox::{
    CompileWorker, Compiling, HandlerSpec, LoadedVersion, Sandbox, SandboxSettings,
};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::guests::{self, Guest};
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

const ROUNDS: usize = 8;
const COMPONENTS: usize = 10;
const MOST: f64 = 2.0;

/// The argument with which this program is a compile worker.
pub(crate) const WORKER: &str = "compile-worker";

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let runtime = Builder::new_multi_thread().thread_name("bench-io").enable_all().build()?;
    let mut lines = Vec::new();
    for (how, compiling) in [
        ("worker", Compiling::Worker(CompileWorker::this_program(WORKER))),
        ("thread", Compiling::Here),
    ] {
        let sandbox = Sandbox::new(SandboxSettings { compiling, ..SandboxSettings::default() })?;
        let measured = measure(sandbox.clone(), options.scaled(ROUNDS));
        let measured = runtime.block_on(async { tokio::spawn(measured).await })??;
        sandbox.shutdown();
        lines.extend(measured.lines(how));
    }
    runtime.shutdown_background();
    Ok(lines)
}

/// How long each call took.
#[derive(Default)]
struct Measured {
    quiet: Vec<Duration>,
    busy: Vec<Duration>,
    compiled: usize,
    compiling: Duration,
}

async fn measure(sandbox: Sandbox, rounds: usize) -> Result<Measured> {
    let home = tempfile::tempdir().context("making a folder")?;
    let component = Guest::Wasip2.component()?;
    let neighbour = sandbox.load(HandlerSpec::new("neighbour/handler", &component)).await?;
    let (version, mut measured) = (neighbour.current(), Measured::default());
    for round in 0..rounds {
        let began = Instant::now();
        let deploys = deploys(&sandbox, home.path(), round)?;
        measured.busy.extend(calls(&version, || deploys.is_finished()).await?);
        measured.compiled += deploys.await??;
        let took = began.elapsed();
        measured.compiling += took;
        // As long without, right after: what slows both is in neither.
        let quiet = Instant::now();
        measured.quiet.extend(calls(&version, || quiet.elapsed() >= took).await?);
    }
    Ok(measured)
}

fn deploys(
    sandbox: &Sandbox,
    folder: &Path,
    round: usize,
) -> Result<tokio::task::JoinHandle<Result<usize>>> {
    let mut deploys = JoinSet::new();
    for n in 0..COMPONENTS {
        let number = round * COMPONENTS + n;
        let path = folder.join(format!("{number}.wasm"));
        fs::write(&path, guests::numbered(Guest::Wasip2, number)?)?;
        let (sandbox, spec) = (sandbox.clone(), HandlerSpec::new(format!("busy/{number}"), path));
        deploys.spawn(async move { sandbox.load(spec).await });
    }
    Ok(tokio::spawn(async move {
        let mut done = 0;
        while let Some(loaded) = deploys.join_next().await {
            loaded??;
            done += 1;
        }
        Ok(done)
    }))
}

/// One call after another, until it is enough.
async fn calls(
    version: &Arc<LoadedVersion>,
    mut enough: impl FnMut() -> bool,
) -> Result<Vec<Duration>> {
    let (invocation, mut took) = (message::invocation(), Vec::new());
    while !enough() {
        let began = Instant::now();
        let ended = version.call(invocation.clone()).await;
        took.push(began.elapsed());
        ensure!(ended.result == Ok(Outcome::Ack), "no acknowledgement: {:?}", ended.result);
    }
    Ok(took)
}

impl Measured {
    fn lines(mut self, how: &str) -> Vec<Line> {
        let name = |what: &str| format!("compile, {how}: {what}");
        let each = self.compiling.as_secs_f64() * 1e3 / float(self.compiled.max(1));
        let mut lines = vec![Line::figure(name("time for a component"), "ms", each)];
        for (rank, text) in [(0.5, "neighbour's p50"), (0.99, "neighbour's p99")] {
            let (busy, quiet) =
                (percentile(&mut self.busy, rank), percentile(&mut self.quiet, rank));
            let line = Line::figure(name(text), "µs", busy).against(quiet);
            let target = (rank > 0.5 && how == "worker").then_some(Target::RatioAtMost(MOST));
            lines.push(match target {
                Some(target) => line.target(target),
                None => line,
            });
        }
        lines
    }
}

/// In microseconds.
pub(crate) fn percentile(took: &mut [Duration], rank: f64) -> f64 {
    took.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is between 0 and 1"
    )]
    let at = (float(took.len().saturating_sub(1)) * rank) as usize;
    took.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "a count is far below 2^52")]
fn float(number: usize) -> f64 {
    number as f64
}
