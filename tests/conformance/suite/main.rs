//! The conformance suite: every case, for every configuration, in both variants, against each of its servers.
//!
//! A trial is named `rule/configuration/variant[/server]`, such as `C-4/SQS FIFO/sequential/elasticmq`. It runs the
//! real pump with a guest in a real sandbox over the configuration's real source and sinks. A full run writes the
//! table of what it showed and fails where `docs/conformance.md` says something else.
//!
//! | variable | |
//! |---|---|
//! | `PUMPHOUSE_ONLY=embedded` | the rows of the embedded broker alone, which need no server |
//! | `PUMPHOUSE_WRITE_CONFORMANCE=1` | writes `docs/conformance.md` |

// The types of RocketMQ's client are deep, and the compiler looks through all of them to see that they can be sent.
#![recursion_limit = "512"]

mod allocations;
mod bench;
mod cases;
mod cell;
mod host;
mod ledger;
mod logs;
mod recorder;
mod rows;
mod tap;
mod world;

use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::bench::Bench;
use crate::cases::{Case, Shown};
use crate::cell::{Cell, Configuration, Variant};
use crate::world::World;

/// The case that waits longest begins first. What a stream did not acknowledge, the emulator of Pub/Sub gives out again
/// after some 40 s while it has few subscriptions, and after more than two minutes with all that a run leaves in it.
const FIRST: &str = "at least once";

/// Trials at once: most of their time they wait.
const AT_ONCE: usize = 30;

/// A trial that takes longer hangs.
const LONGEST_TRIAL: Duration = Duration::from_secs(180);

struct Suite {
    runtime: Runtime,
    world: OnceCell<Arc<World>>,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    logs::listen()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let suite = Arc::new(Suite { runtime, world: OnceCell::new() });
    let cases = cases::all();
    let conclusion = libtest_mimic::run(arguments, trials(&suite, &cases));
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if whole {
        conclude(&cases, !conclusion.has_failed())?;
    }
    Ok(!conclusion.has_failed())
}

/// Whether the rows of the embedded broker run alone.
fn embedded_only() -> Result<bool> {
    match std::env::var("PUMPHOUSE_ONLY").as_deref() {
        Ok("embedded") => Ok(true),
        Ok("") | Err(_) => {
            Ok(cfg!(not(any(feature = "pubsub", feature = "rocketmq", feature = "sqs"))))
        }
        Ok(other) => bail!("PUMPHOUSE_ONLY is {other:?}; it can be \"embedded\", or not set"),
    }
}

/// Leaves the run's table, and holds the committed one to it where all went well.
fn conclude(cases: &[Case], passed: bool) -> Result<()> {
    let table = ledger::table(cases);
    let left = ledger::left();
    std::fs::write(&left, &table).with_context(|| format!("writing {}", left.display()))?;
    if !passed {
        return Ok(());
    }
    let embedded_only = embedded_only()? || !Configuration::ALL.iter().all(|one| one.is_built());
    if std::env::var_os("PUMPHOUSE_WRITE_CONFORMANCE").is_some_and(|it| it == "1") {
        if embedded_only {
            bail!("PUMPHOUSE_WRITE_CONFORMANCE needs a run of every row");
        }
        std::fs::write(ledger::committed(), &table).context("writing docs/conformance.md")?;
    }
    ledger::compare(&table, embedded_only)
}

fn trials(suite: &Arc<Suite>, cases: &[Case]) -> Vec<Trial> {
    let embedded_only = match embedded_only() {
        Ok(embedded_only) => embedded_only,
        Err(error) => {
            let text = format!("{error:#}");
            return vec![Trial::test("configuration", move || Err(Failed::from(text)))];
        }
    };
    let cells = cells(embedded_only);
    let mut trials = Vec::new();
    let (first, others): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.name == FIRST);
    for case in first.into_iter().chain(others) {
        for cell in &cells {
            let (suite, case, cell) = (suite.clone(), *case, *cell);
            let number = trials.len();
            let name = format!("{}/{cell}", case.title());
            trials.push(Trial::test(name, move || suite.trial(&case, cell, number)));
        }
    }
    trials
}

fn cells(embedded_only: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for configuration in Configuration::ALL {
        let left_out = embedded_only && !configuration.is_embedded();
        if left_out || !configuration.is_built() {
            continue;
        }
        for variant in Variant::BOTH {
            let with = |server: &cell::Server| Cell { configuration, variant, server: *server };
            cells.extend(configuration.servers().iter().map(with));
        }
    }
    cells
}

impl Suite {
    fn trial(&self, case: &Case, cell: Cell, number: usize) -> Result<(), Failed> {
        let outcome = self.runtime.block_on(self.run(case, cell, number));
        ledger::note(case, cell, outcome.as_ref().ok().copied());
        outcome
            .map(|_| ())
            .map_err(|error| format!("{} ({}) on {cell}: {error:#}", case.rule, case.says).into())
    }

    async fn run(&self, case: &Case, cell: Cell, number: usize) -> Result<Shown> {
        let world = self.world.get_or_try_init(World::new).await?.clone();
        let bench = Bench::new(world, cell, number).await?;
        let outcome = timeout(LONGEST_TRIAL, (case.run)(bench.clone()))
            .await
            .unwrap_or_else(|_| bail!("no end after {} s", LONGEST_TRIAL.as_secs()));
        let outcome = outcome.map_err(|error| error.context(bench.story()));
        bench.close().await;
        outcome
    }
}
