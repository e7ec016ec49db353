//! Ten thousand handlers of a thousand tenants in one process, and a thousand subscriptions without a message.
//!
//! The components are the guest without WASI, each with a number in a section of its own: others of their digests, and
//! quick to compile. That is done by another process first, whose memory is none of this one's.

mod idle;
mod process;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pumphouse_contract::Outcome;
use pumphouse_contract::ports::Handler;
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};
use tokio::runtime::{Builder, Runtime};

use self::process::Census;
use crate::compile::percentile;
use crate::guests::{self, Guest};
use crate::measure::Stopwatch;
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

/// The argument with which this program only compiles and fills the cache.
const PREPARE: &str = "many-prepare";
/// The argument with which it only registers what the cache holds.
const REGISTER: &str = "many-register";

const HANDLERS: usize = 10_000;
const TENANTS: usize = 1_000;
/// Rust's standard library needs a tenth of a second each to be compiled: fewer of them.
const WASIP2: usize = 256;
const AT_ONCE: usize = 64;
/// What they bring with them is the host's, and is there once.
const FIRST: usize = 64;
const CALLS: usize = 1_000;
const IDLE: Duration = Duration::from_secs(10);

const LEAST_A_SECOND: f64 = 1_000.0;
const MOST_KIB: f64 = 50.0;
const MOST_OVER_WARM: f64 = 2_000.0;
/// Of a core, in hundredths.
const MOST_WATCHING: f64 = 1.0;

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    pumphouse_sandbox::raise_open_files();
    let runtime = runtime()?;
    let built = std::env::current_exe()?;
    let disk = built.parent().unwrap_or(Path::new("."));
    // Before the others leave memory behind that the allocator uses again.
    let mut lines = idle::run(&runtime, options)?;
    for (guest, many) in [(Guest::Wasip2, WASIP2), (Guest::WithoutWasi, HANDLERS)] {
        let many = options.scaled(many);
        let resident = options.scaled(SandboxSettings::default().resident);
        let home = tempfile::Builder::new().prefix("bench-many-").tempdir_in(disk);
        let home = home.context("making a folder")?;
        let fleet = Fleet { guest, many, resident, home: home.path().to_owned() };
        lines.extend(fleet.measure(&runtime)?);
    }
    runtime.shutdown_background();
    Ok(lines)
}

/// Many handlers of one kind of guest.
struct Fleet {
    guest: Guest,
    many: usize,
    /// How many are in memory at once.
    resident: usize,
    home: PathBuf,
}

/// Does a part of the work in a process of its own, whose memory is nobody else's, where the arguments say so.
pub(crate) fn part(arguments: &[String]) -> Option<Result<()>> {
    let (first, rest) = arguments.split_first()?;
    match first.as_str() {
        PREPARE => Some(Fleet::of(rest).and_then(|fleet| fleet.prepare())),
        REGISTER => Some(Fleet::of(rest).and_then(|fleet| fleet.print_registering())),
        _ => None,
    }
}

impl Fleet {
    fn of(arguments: &[String]) -> Result<Self> {
        let [guest, many, home] = arguments else { bail!("not for people") };
        let guest = Guest::ALL.into_iter().find(|one| one.label() == guest);
        let guest = guest.context("no such guest")?;
        let resident = SandboxSettings::default().resident;
        Ok(Self { guest, many: many.parse()?, resident, home: home.into() })
    }

    /// Compiles all components of a folder.
    fn prepare(&self) -> Result<()> {
        fs::create_dir_all(self.components())?;
        for number in 0..self.many {
            fs::write(self.component(number), guests::numbered(self.guest, number)?)?;
        }
        let sandbox = self.sandbox()?;
        runtime()?.block_on(self.register(&sandbox, 0..self.many))?;
        sandbox.shutdown();
        Ok(())
    }

    /// Prints how many a second are registered, and the KiB of each, where one alone has room to be loaded.
    #[expect(clippy::print_stdout, reason = "the answer of this process")]
    fn print_registering(&self) -> Result<()> {
        let sandbox = Self { resident: 1, home: self.home.clone(), ..*self }.sandbox()?;
        let runtime = runtime()?;
        let first = FIRST.min(self.many / 2);
        let mut handlers = runtime.block_on(self.register(&sandbox, 0..first))?;
        let (before, began) = (Census::now()?, Instant::now());
        handlers.extend(runtime.block_on(self.register(&sandbox, first..self.many))?);
        let many = float(self.many - first);
        let a_second = many / began.elapsed().as_secs_f64();
        let each = Census::now()?.anonymous_over(&before) / many;
        ensure!(sandbox.resident() <= 1, "{} were loaded", sandbox.resident());
        println!("{a_second} {each}");
        drop(handlers);
        sandbox.shutdown();
        Ok(())
    }

    fn components(&self) -> PathBuf {
        self.home.join("components")
    }

    fn component(&self, number: usize) -> PathBuf {
        self.components().join(format!("{number}.wasm"))
    }

    fn sandbox(&self) -> Result<Sandbox> {
        let cache = Some(self.home.join("cache"));
        let resident = self.resident;
        Ok(Sandbox::new(SandboxSettings { cache, resident, ..SandboxSettings::default() })?)
    }

    async fn register(
        &self,
        sandbox: &Sandbox,
        which: Range<usize>,
    ) -> Result<Vec<Arc<LoadedHandler>>> {
        let loads = stream::iter(which).map(|number| {
            let name = format!("tenant-{}/handler-{number}", number % TENANTS);
            sandbox.load(HandlerSpec::new(name, self.component(number)))
        });
        Ok(loads.buffered(AT_ONCE).try_collect().await?)
    }

    fn name(&self, what: &str) -> String {
        format!("many, {} × {}: {what}", self.many, self.guest.label())
    }

    fn measure(&self, runtime: &Runtime) -> Result<Vec<Line>> {
        let preparing = Instant::now();
        self.child(PREPARE)?;
        let each = preparing.elapsed().as_secs_f64() * 1e3 / float(self.many);
        let mut lines = vec![Line::figure(self.name("made and compiled, each"), "ms", each)];
        lines.extend(self.of_registered()?);
        let sandbox = self.sandbox()?;
        let resident = self.resident.min(self.many);
        let first = FIRST.min(resident / 2);
        let mut handlers = runtime.block_on(self.register(&sandbox, 0..first))?;
        runtime.block_on(call_each(&handlers))?;
        let before = Census::now()?;
        handlers.extend(runtime.block_on(self.register(&sandbox, first..resident))?);
        runtime.block_on(call_each(&handlers))?;
        lines.extend(self.of_residents(&sandbox, resident - first, &before)?);
        handlers.extend(runtime.block_on(self.register(&sandbox, resident..self.many))?);
        lines.extend(self.of_cold_ones(runtime, &handlers)?);
        lines.push(self.of_watching());
        let began = Instant::now();
        drop(handlers);
        let dropped = began.elapsed().as_secs_f64() * 1e6 / float(self.many);
        lines.push(Line::figure(self.name("dropping one"), "µs", dropped));
        sandbox.shutdown();
        Ok(lines)
    }

    /// Runs this program for a part of the work, and gives what it printed.
    fn child(&self, part: &str) -> Result<String> {
        let output = Command::new("/proc/self/exe")
            .args([part, self.guest.label(), &self.many.to_string()])
            .arg(&self.home)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "{part} of {} failed", self.guest.label());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Those that are not in memory.
    fn of_registered(&self) -> Result<Vec<Line>> {
        let printed = self.child(REGISTER)?;
        let figures: Vec<f64> =
            printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [a_second, each] = figures[..] else { bail!("{REGISTER} printed {printed:?}") };
        Ok(vec![
            Line::figure(self.name("registered from the cache"), "/s", a_second)
                .target(Target::AtLeast(LEAST_A_SECOND)),
            Line::figure(self.name("memory of one that is not resident"), "KiB", each),
        ])
    }

    /// As many as stay in memory, each of which was called; so many of them came after the census.
    fn of_residents(&self, sandbox: &Sandbox, came: usize, before: &Census) -> Result<Vec<Line>> {
        let (census, resident) = (Census::now()?, sandbox.resident());
        ensure!(resident == self.resident.min(self.many), "{resident} are resident");
        let each = |over: f64| over / float(came);
        Ok(vec![
            Line::figure(self.name("resident"), "", float(resident)),
            Line::figure(
                self.name("anonymous memory of a resident one"),
                "KiB",
                each(census.anonymous_over(before)),
            )
            .target(Target::AtMost(MOST_KIB)),
            Line::figure(
                self.name("open files of a resident one"),
                "",
                each(float(census.files) - float(before.files)),
            ),
            Line::figure(
                self.name("memory maps of a resident one"),
                "",
                each(float(census.maps) - float(before.maps)),
            ),
            Line::figure(self.name("open files in all"), "", float(census.files)),
            Line::figure(self.name("memory maps in all"), "", float(census.maps)),
        ])
    }

    /// First messages to handlers that are not in memory, beside as many to one that is.
    fn of_cold_ones(
        &self,
        runtime: &Runtime,
        handlers: &[Arc<LoadedHandler>],
    ) -> Result<Vec<Line>> {
        let resident = self.resident;
        let cold: Vec<_> = handlers.iter().skip(resident).take(CALLS).cloned().collect();
        let Some(warm) = handlers.get(resident.saturating_sub(1)).cloned() else {
            return Ok(Vec::new());
        };
        let timed = runtime.block_on(async move {
            tokio::spawn(async move {
                let (mut warm_calls, mut cold_calls) = (Vec::new(), Vec::new());
                for handler in &cold {
                    warm_calls.push(call(&warm).await?);
                    cold_calls.push(call(handler).await?);
                }
                anyhow::Ok((warm_calls, cold_calls))
            })
            .await
        })??;
        let (mut warm, mut cold) = timed;
        let lines = [(0.5, "p50"), (0.99, "p99")].map(|(rank, text)| {
            let (warm, cold) = (percentile(&mut warm, rank), percentile(&mut cold, rank));
            Line::figure(self.name(&format!("first message, {text}")), "µs", cold)
                .against(warm)
                .target(Target::OverAtMost(MOST_OVER_WARM))
        });
        Ok(lines.into())
    }

    /// What the watch over all files costs while nothing changes.
    fn of_watching(&self) -> Line {
        // The clock that ticks for calls rests after a while.
        std::thread::sleep(Duration::from_secs(1));
        let watch = Stopwatch::start();
        std::thread::sleep(IDLE);
        let percent = watch.stop(1).cpu / IDLE.as_secs_f64() / 1e4;
        Line::figure(self.name("idle, with all files watched"), "% of a core", percent)
            .target(Target::AtMost(MOST_WATCHING))
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().thread_name("bench-io").enable_all().build()?)
}

async fn call_each(handlers: &[Arc<LoadedHandler>]) -> Result<()> {
    for handler in handlers {
        call(handler).await?;
    }
    Ok(())
}

async fn call(handler: &LoadedHandler) -> Result<Duration> {
    let invocation = message::invocation();
    let began = Instant::now();
    let ended = handler.begin().call(invocation).await;
    let took = began.elapsed();
    ensure!(ended.result == Ok(Outcome::Ack), "no acknowledgement: {:?}", ended.result);
    Ok(took)
}

#[expect(clippy::cast_precision_loss, reason = "a count is far below 2^52")]
fn float(number: usize) -> f64 {
    number as f64
}
