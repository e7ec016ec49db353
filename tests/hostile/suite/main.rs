//! The hostile guests: a trial for each, and the table of what they showed.
//!
//! A trial runs its guest in the real sandbox behind the real pump on the embedded broker, beside a neighbour of
//! another tenant. It shows that the fault is named, that the message follows the subscription's policy, that the
//! neighbour goes on, and that the same handler's next message succeeds (FR-22). A full run fails where
//! `docs/hostile.md` says something else.
//!
//! | variable | |
//! |---|---|
//! | `PUMPHOUSE_WRITE_HOSTILE=figures` | measures, which wants a release build and a machine to itself, and writes `docs/hostile.md` |
//! | `PUMPHOUSE_WRITE_HOSTILE=rows` | writes `docs/hostile.md` with the figures that stand in it |

mod binary;
mod calls;
mod generated;
mod measure;
mod row;
mod rows;
mod scene;
mod table;
mod trial;
mod world;

use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::measure::Figures;
use crate::row::Row;
use crate::world::World;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trials at once: they wait for deadlines more than they work.
const AT_ONCE: usize = 4;

/// A trial that takes longer hangs.
const LONGEST_TRIAL: Duration = Duration::from_secs(900);

fn main() -> ExitCode {
    let mut own = std::env::args_os().skip(1);
    if own.next().is_some_and(|first| first == world::WORKER) {
        return pumphouse_sandbox::compile_worker(own);
    }
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let runtime = Arc::new(runtime);
    let world = if arguments.list { None } else { Some(runtime.block_on(World::new())?) };
    let rows: Vec<Arc<Row>> = rows::all().into_iter().map(Arc::new).collect();
    let trials = rows.iter().map(|row| trial(row, &runtime, world.as_ref())).collect();
    let conclusion = libtest_mimic::run(arguments, trials);
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if whole && !conclusion.has_failed() {
        conclude(&rows, &runtime)?;
    }
    Ok(!conclusion.has_failed())
}

fn trial(row: &Arc<Row>, runtime: &Arc<Runtime>, world: Option<&Arc<World>>) -> Trial {
    let (row, runtime, world) = (row.clone(), runtime.clone(), world.cloned());
    Trial::test(row.name, move || {
        let world = world.ok_or_else(|| Failed::from("there is no sandbox"))?;
        let what = async { timeout(LONGEST_TRIAL, trial::run(&world, &row)).await };
        let outcome = runtime.block_on(what).unwrap_or_else(|_| bail!("it hangs"));
        outcome.map_err(|error| format!("{}: {error:#}", row.name).into())
    })
}

/// Writes the table where that is asked for; else holds the committed one to what was shown.
fn conclude(rows: &[Arc<Row>], runtime: &Runtime) -> Result<()> {
    match std::env::var("PUMPHOUSE_WRITE_HOSTILE").as_deref() {
        Ok("figures") => write_figures(rows, runtime),
        Ok("rows") => std::fs::write(table::committed(), table::with_known_figures(rows))
            .context("writing the table"),
        Ok("") | Err(_) => table::compare(rows),
        Ok(other) => {
            bail!("PUMPHOUSE_WRITE_HOSTILE is {other:?}; it can be \"rows\" or \"figures\"")
        }
    }
}

fn write_figures(rows: &[Arc<Row>], runtime: &Runtime) -> Result<()> {
    if cfg!(debug_assertions) {
        bail!("figures of a debug build say nothing: run `cargo xtask hostile`");
    }
    let mut figures = Vec::new();
    for row in rows {
        let measured = runtime.block_on(measure::measure(row));
        let measured = measured.with_context(|| format!("measuring {}", row.name))?;
        table::show(row, measured.as_ref());
        figures.push(measured);
    }
    std::fs::write(table::committed(), table::with(rows, &figures)).context("writing the table")?;
    hold(rows, &figures)
}

/// The promise of every row: a neighbour's p99 within twice of what an equally busy honest one costs it.
fn hold(rows: &[Arc<Row>], figures: &[Option<Figures>]) -> Result<()> {
    let over = rows.iter().zip(figures).filter_map(|(row, figures)| {
        let ratio = figures.as_ref()?.ratio;
        (ratio > measure::MOST).then(|| format!("{} {ratio:.2}", row.name))
    });
    let over: Vec<String> = over.collect();
    if over.is_empty() { Ok(()) } else { bail!("beyond {}: {}", measure::MOST, over.join(", ")) }
}
