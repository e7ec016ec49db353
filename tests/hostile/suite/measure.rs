//! What a hostile guest costs: the time until it is contained, and what its neighbour feels of it.
//!
//! The neighbour makes short calls, one after another, while a crowd of another tenant is at work: hostile, honest,
//! hostile, honest and so on, in one run. The honest crowd takes as much of the processors as the hostile one would if
//! it were alone, since a neighbour is slowed down by anybody who has work to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, Ended, Message, Outgoing};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox};
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::generated;
use crate::row::{Component, Expected, Row};
use crate::trial::spec_of;
use crate::world::{guest, settings};

/// What the ratio may be.
pub(crate) const MOST: f64 = 2.0;

/// Calls of the crowd at once.
const CROWD: usize = 8;
/// Deploys of the crowd at once.
const DEPLOYERS: usize = 2;
const TURNS: usize = 5;
const TURN: Duration = Duration::from_millis(800);
/// Until a crowd is at work, before a turn is measured.
const WARM_UP: Duration = Duration::from_millis(200);
/// Calls, or deploys, of a hostile one alone: so many, and calls for so long at least.
const SOLO_CALLS: usize = 5;
const SOLO: Duration = Duration::from_millis(100);
/// What a call of the neighbour computes, and how long it rests between two.
const NEIGHBOURS_WORK: Duration = Duration::from_millis(1);

/// What the runtime's timer steps by.
const TIMER: Duration = Duration::from_millis(1);

/// What was measured of one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// From the beginning of the call, or of the deploy, to its end; the longest of some.
    pub(crate) contained: Duration,
    /// The neighbour's p99 beside the hostile crowd, by that beside the honest one.
    pub(crate) ratio: f64,
    /// The neighbour's p99 beside the honest crowd.
    pub(crate) honest: Duration,
}

/// Measures a row; none where it can't be repeated at will.
pub(crate) async fn measure(row: &Row) -> Result<Option<Figures>> {
    if matches!(row.expected, Expected::Own(..)) {
        return Ok(None);
    }
    let stage = Stage::new(row).await?;
    let crowds = stage.crowds(row).await?;
    let neighbour = stage.busy("neighbour").await?;
    let work = stage.turns(&neighbour, NEIGHBOURS_WORK).await?;
    let (mut hostile, mut honest) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        hostile.extend(turn(&crowds.hostile, &neighbour, work).await?);
        honest.extend(turn(&crowds.honest, &neighbour, work).await?);
    }
    stage.sandbox.shutdown();
    let (hostile, honest) = (p99(hostile)?, p99(honest)?);
    let ratio = hostile.as_secs_f64() / honest.as_secs_f64();
    Ok(Some(Figures { contained: crowds.contained, ratio, honest }))
}

/// The neighbour's calls beside a crowd.
async fn turn(crowd: &Crowd, neighbour: &LoadedHandler, work: u64) -> Result<Vec<Duration>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut members = crowd.start(&stop);
    sleep(WARM_UP).await;
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < TURN {
        let call = Instant::now();
        let ended = neighbour.begin().call(busy_for(work)).await;
        took.push(call.elapsed());
        ended.result.ok().context("the neighbour's call failed")?;
        sleep(NEIGHBOURS_WORK).await;
    }
    stop.store(true, Ordering::Relaxed);
    while members.join_next().await.is_some() {}
    Ok(took)
}

/// Where one row is measured: a sandbox of its own, with whatever the row needs in a folder.
struct Stage {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
    files: Vec<std::path::PathBuf>,
}

/// What is compared, and how long one hostile call or deploy took alone.
struct Crowds {
    hostile: Crowd,
    honest: Crowd,
    contained: Duration,
}

/// What a crowd does, again and again.
enum Crowd {
    Calls { handler: Arc<LoadedHandler>, invocation: Invocation, rest: Duration },
    Deploys { sandbox: Sandbox, specs: Vec<HandlerSpec> },
    FreshDeploys { sandbox: Sandbox, folder: std::path::PathBuf },
}

impl Stage {
    async fn new(row: &Row) -> Result<Self> {
        let sandbox = Sandbox::new(settings())?;
        let folder = tempfile::tempdir()?;
        let mut files = Vec::new();
        for (number, component) in (row.components)()?.into_iter().enumerate() {
            files.push(match component {
                Component::Built(path) => path,
                Component::Made(bytes) => {
                    let path = folder.path().join(format!("{number}.wasm"));
                    std::fs::write(&path, bytes)?;
                    path
                }
            });
        }
        Ok(Self { sandbox, folder, files })
    }

    async fn crowds(&self, row: &Row) -> Result<Crowds> {
        match row.expected {
            Expected::Fault(_) | Expected::Harmless(..) => self.calling(row).await,
            Expected::Refused(_) | Expected::Either | Expected::Own(..) => {
                self.deploying(row).await
            }
        }
    }

    async fn calling(&self, row: &Row) -> Result<Crowds> {
        let path = self.files.first().context("a component")?;
        let handler = self.sandbox.load(spec_of(row, path)).await?;
        let invocation = invocation((row.message)());
        let mut contained = Duration::ZERO;
        let (solo, before) = (Instant::now(), processor_time());
        let mut calls = 0;
        while calls < SOLO_CALLS || solo.elapsed() < SOLO {
            let began = Instant::now();
            handler.begin().call(invocation.clone()).await;
            contained = contained.max(began.elapsed());
            calls += 1;
        }
        // With what the host does for a call: of one that traps at once, that is most of it.
        let cpu = processor_time().saturating_sub(before);
        let calls = u32::try_from(calls)?;
        let each = cpu / calls;
        let busy = self.busy("honest").await?;
        let turns = self.turns(&busy, each).await?;
        // A shorter one than the timer's step would be much longer than it.
        let rest = Some((solo.elapsed() / calls).saturating_sub(each));
        let rest = rest.filter(|rest| *rest >= TIMER).unwrap_or_default();
        let hostile = Crowd::Calls { handler, invocation, rest: Duration::ZERO };
        let honest = Crowd::Calls { handler: busy, invocation: busy_for(turns), rest };
        Ok(Crowds { hostile, honest, contained })
    }

    async fn deploying(&self, row: &Row) -> Result<Crowds> {
        let specs: Vec<HandlerSpec> = self.files.iter().map(|path| spec_of(row, path)).collect();
        let mut contained = Duration::ZERO;
        for spec in specs.iter().take(SOLO_CALLS) {
            let began = Instant::now();
            drop(self.sandbox.load(spec.clone()).await);
            contained = contained.max(began.elapsed());
        }
        let sandbox = self.sandbox.clone();
        let honest =
            Crowd::FreshDeploys { sandbox: sandbox.clone(), folder: self.folder.path().to_owned() };
        Ok(Crowds { hostile: Crowd::Deploys { sandbox, specs }, honest, contained })
    }

    /// An honest handler of a tenant of its own.
    async fn busy(&self, tenant: &str) -> Result<Arc<LoadedHandler>> {
        let mut spec = HandlerSpec::new(format!("{tenant}/busy"), guest("hostile_busy")?);
        spec.watch = false;
        spec.limits.deadline = Duration::from_secs(60);
        Ok(self.sandbox.load(spec).await?)
    }

    /// How many turns of the busy guest take so long on a processor.
    async fn turns(&self, busy: &LoadedHandler, time: Duration) -> Result<u64> {
        const PROBE: u64 = 20_000_000;
        let ended: Ended = busy.begin().call(busy_for(PROBE)).await;
        let cpu = ended.usage.cpu;
        ensure!(ended.result.is_ok() && cpu > Duration::ZERO, "the busy guest ended as {ended:?}");
        let turns = time.as_nanos().saturating_mul(PROBE.into()) / cpu.as_nanos().max(1);
        Ok(u64::try_from(turns)?)
    }
}

impl Crowd {
    fn start(&self, stop: &Arc<AtomicBool>) -> JoinSet<()> {
        let mut members = JoinSet::new();
        match self {
            Self::Calls { handler, invocation, rest } => {
                for _ in 0..CROWD {
                    members.spawn(call(handler.clone(), invocation.clone(), *rest, stop.clone()));
                }
            }
            Self::Deploys { sandbox, specs } => {
                for _ in 0..DEPLOYERS {
                    members.spawn(deploy(sandbox.clone(), specs.clone(), stop.clone()));
                }
            }
            Self::FreshDeploys { sandbox, folder } => {
                for _ in 0..DEPLOYERS {
                    members.spawn(deploy_fresh(sandbox.clone(), folder.clone(), stop.clone()));
                }
            }
        }
        members
    }
}

async fn call(
    handler: Arc<LoadedHandler>,
    invocation: Invocation,
    rest: Duration,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        handler.begin().call(invocation.clone()).await;
        if rest > Duration::ZERO {
            sleep(rest).await;
        }
    }
}

async fn deploy(sandbox: Sandbox, specs: Vec<HandlerSpec>, stop: Arc<AtomicBool>) {
    for spec in specs.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        drop(sandbox.load(spec.clone()).await);
    }
}

/// Components that nobody has compiled yet, one after another.
async fn deploy_fresh(sandbox: Sandbox, folder: std::path::PathBuf, stop: Arc<AtomicBool>) {
    static SALT: AtomicU64 = AtomicU64::new(1_000);
    while !stop.load(Ordering::Relaxed) {
        let salt = SALT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("fresh-{salt}.wasm"));
        let Ok(bytes) = generated::salted(salt) else { return };
        if std::fs::write(&path, bytes).is_err() {
            return;
        }
        let mut spec = HandlerSpec::new("honest/fresh", path);
        spec.watch = false;
        drop(sandbox.load(spec).await);
    }
}

fn busy_for(turns: u64) -> Invocation {
    invocation(Outgoing { body: turns.to_string().into(), ..Outgoing::default() })
}

fn invocation(message: Outgoing) -> Invocation {
    let Outgoing { headers, body, .. } = message;
    let message = Message { id: "m".into(), headers, body, ..Message::default() };
    Invocation {
        message: Arc::new(message),
        source: "in".into(),
        subscription: "in".into(),
        count: Count(0),
    }
}

/// Of this process, user and system together.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

fn p99(mut took: Vec<Duration>) -> Result<Duration> {
    took.sort_unstable();
    let at = took.len().saturating_sub(1) * 99 / 100;
    took.get(at).copied().context("nothing was measured")
}
