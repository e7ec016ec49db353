//! What is shown of every row.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pumphouse_contract::copy::names;
use pumphouse_contract::{FaultKind, Outcome, Outgoing, Reason};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};

use crate::calls::Call;
use crate::generated;
use crate::row::{Answer, Component, Expected, Next, Own, Row};
use crate::scene::{BUDGET, DEAD, INVALID, Scene, until};
use crate::world::{World, guest, replace, spec};

/// What a call may take beyond its deadline, on a machine that does many things at once.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The neighbour's messages in each trial.
const NEIGHBOURS: usize = 5;

pub(crate) async fn run(world: &Arc<World>, row: &Row) -> Result<()> {
    let neighbours = beside(world).await?;
    match &row.expected {
        Expected::Fault(kind) => faults(world, row, *kind).await?,
        Expected::Refused(words) => refused(world, row, words).await?,
        Expected::Harmless(_, answer) => harmless(world, row, *answer).await?,
        Expected::Either => either(world, row).await?,
        Expected::Own(_, Own::PoisonedCache) => poisoned_cache().await?,
    }
    went_on(world, &neighbours).await
}

/// The neighbour's messages, published while the row misbehaves.
async fn beside(world: &World) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for _ in 0..NEIGHBOURS {
        ids.push(world.neighbour.publish(good()).await?);
    }
    Ok(ids)
}

/// Each of them was handled by its first call.
async fn went_on(world: &World, ids: &[String]) -> Result<()> {
    for id in ids {
        acknowledged(&world.neighbour, id).await.context("the neighbour")?;
    }
    Ok(())
}

fn good() -> Outgoing {
    Outgoing { body: "good".into(), ..Outgoing::default() }
}

async fn faults(world: &World, row: &Row, kind: FaultKind) -> Result<()> {
    for component in (row.components)()? {
        let path = world.file(&component)?;
        let handler = world.load(row, &path).await?;
        let scene = Scene::start(handler.clone()).await?;
        let id = scene.publish((row.message)()).await?;
        dies_of(&scene, row, &id, kind).await?;
        if row.next == Next::Swap {
            swap(&handler, &path).await?;
        }
        next_succeeds(&scene).await?;
        scene.stop().await?;
    }
    Ok(())
}

/// The message is called so often as its budget says, each call ends with the fault, and the copy tells of it.
async fn dies_of(scene: &Scene, row: &Row, id: &str, kind: FaultKind) -> Result<()> {
    scene.rests().await?;
    let calls = scene.calls.of(id);
    let counts: Vec<u32> = calls.iter().map(|call| call.count).collect();
    ensure!(counts == (0..BUDGET).collect::<Vec<u32>>(), "called with the counts {counts:?}");
    for call in &calls {
        contained(call, row, kind)?;
    }
    let copy = scene.copy(DEAD, id).await?.context("no copy of it is dead")?;
    let told = copy.headers.text(names::REJECTION_MESSAGE).unwrap_or_default();
    let named = |kind: FaultKind| told.contains(&format!("after the fault {kind}:"));
    ensure!(accepted(kind).into_iter().any(named), "its copy says {told:?}");
    Ok(())
}

fn contained(call: &Call, row: &Row, kind: FaultKind) -> Result<()> {
    let Err(fault) = &call.result else { bail!("it answered: {call:?}") };
    ensure!(accepted(kind).contains(&fault.kind), "its fault is {fault:?}");
    ensure!(call.took < row.limits.deadline + TOLERANCE, "it took {:?}", call.took);
    ensure!(!fault.detail.contains("cannot enter component instance"), "{fault:?}");
    Ok(())
}

/// On a machine with too much to do, a guest that runs into its deadline may not have run at all.
fn accepted(kind: FaultKind) -> Vec<FaultKind> {
    match kind {
        FaultKind::Deadline | FaultKind::Cpu => vec![kind, FaultKind::Starved],
        _ => vec![kind],
    }
}

/// FR-22.
async fn next_succeeds(scene: &Scene) -> Result<()> {
    let id = scene.publish(good()).await?;
    acknowledged(scene, &id).await.context("the next message")
}

/// By the first call that had a processor.
async fn acknowledged(scene: &Scene, id: &str) -> Result<()> {
    until("it is called", || !scene.calls.of(id).is_empty()).await?;
    let calls = scene.calls.of(id);
    let first = calls.first().context("a call")?;
    if matches!(&first.result, Err(fault) if fault.kind == FaultKind::Starved) {
        return Ok(());
    }
    ensure!(first.result == Ok(Outcome::Ack), "it ended as {first:?}");
    Ok(())
}

async fn swap(handler: &LoadedHandler, path: &Path) -> Result<()> {
    let before = handler.status().digest;
    replace(path, &generated::honest()?)?;
    until("the handler is swapped", || handler.status().digest != before).await
}

async fn harmless(world: &World, row: &Row, answer: Answer) -> Result<()> {
    let component = (row.components)()?.pop().context("a component")?;
    let path = world.file(&component)?;
    let handler = world.load(row, &path).await?;
    let scene = Scene::start(handler.clone()).await?;
    let id = scene.publish((row.message)()).await?;
    scene.rests().await?;
    let calls = scene.calls.of(&id);
    let [call] = calls.as_slice() else { bail!("called {} times: {calls:?}", calls.len()) };
    match (answer, &call.result) {
        (Answer::Ack, Ok(Outcome::Ack)) => {}
        (Answer::Says(fits), Ok(Outcome::Reject(rejection))) => {
            ensure!(fits(&rejection.description), "it says {:?}", rejection.description);
            let queue = if rejection.reason == Reason::Unacceptable { INVALID } else { DEAD };
            ensure!(scene.copy(queue, &id).await?.is_some(), "no copy of it is there");
        }
        (_, other) => bail!("it ended as {other:?}"),
    }
    if row.next == Next::Swap {
        swap(&handler, &path).await?;
    }
    next_succeeds(&scene).await?;
    scene.stop().await
}

/// Neither a start nor a swap takes it; the version that is there goes on.
async fn refused(world: &World, row: &Row, words: &[&str]) -> Result<()> {
    let components = (row.components)()?;
    for component in &components {
        let Err(error) = world.load(row, &world.file(component)?).await else {
            bail!("it was taken")
        };
        let text = format!("{error:#}");
        ensure!(words.iter().all(|word| text.contains(word)), "it was refused by {text}");
        ensure!(text.len() < 4_096, "the refusal is {} bytes long", text.len());
    }
    let path = world.file(&Component::Made(generated::honest()?))?;
    let handler = world.load(row, &path).await?;
    let scene = Scene::start(handler.clone()).await?;
    replace(&path, &bytes_of(components.first().context("a component")?)?)?;
    until("it is refused", || handler.status().problem.is_some()).await?;
    next_succeeds(&scene).await?;
    scene.stop().await
}

fn bytes_of(component: &Component) -> Result<Vec<u8>> {
    match component {
        Component::Built(path) => Ok(std::fs::read(path)?),
        Component::Made(bytes) => Ok(bytes.clone()),
    }
}

/// Whatever it is taken for, it is within bounds: a call of it ends, and what is sound still loads and runs.
async fn either(world: &World, row: &Row) -> Result<()> {
    for component in (row.components)()? {
        let Ok(handler) = world.load(row, &world.file(&component)?).await else { continue };
        let scene = Scene::start(handler).await?;
        scene.publish(good()).await?;
        scene.rests().await?;
        scene.stop().await?;
    }
    let sound = world.file(&Component::Made(generated::salted(1)?))?;
    let scene = Scene::start(world.load(row, &sound).await?).await?;
    next_succeeds(&scene).await?;
    scene.stop().await
}

/// What others put into the cache is never run: it is found out, compiled anew, and the handler answers.
async fn poisoned_cache() -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("compiled");
    let start = || {
        let cache = Some(folder.clone());
        Sandbox::new(SandboxSettings { cache, pool_slots: 4, ..SandboxSettings::default() })
    };
    answers(&start()?).await?;
    for poison in [
        (|bytes| flip(bytes)) as fn(&mut Vec<u8>),
        |bytes| bytes.truncate(bytes.len() / 2),
        Vec::clear,
    ] {
        let files = files_of(&folder)?;
        ensure!(!files.is_empty(), "nothing was kept in {}", folder.display());
        for file in files {
            let mut bytes = std::fs::read(&file)?;
            poison(&mut bytes);
            replace(&file, &bytes)?;
        }
        answers(&start()?).await?;
    }
    Ok(())
}

fn flip(bytes: &mut [u8]) {
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 0xff;
    }
}

async fn answers(sandbox: &Sandbox) -> Result<()> {
    let spec = HandlerSpec::new("acme/cached", guest("hostile_headers")?);
    let scene = Scene::start(sandbox.load(spec).await?).await?;
    next_succeeds(&scene).await?;
    scene.stop().await?;
    sandbox.shutdown();
    Ok(())
}

fn files_of(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_of(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

/// So that a row's own handler can be measured as it is tried.
pub(crate) fn spec_of(row: &Row, path: &Path) -> HandlerSpec {
    HandlerSpec { watch: false, ..spec(row, path) }
}
