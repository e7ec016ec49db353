//! The same handler in several languages: a fresh instance for every message beside one that is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use pumphouse_sandbox::{HandlerSpec, Instances, LoadedHandler, Sandbox, SandboxSettings};

use super::Runtimes;
use super::latency::acknowledged;
use crate::measure::{Sample, Series, Stopwatch, WALL};
use crate::message;
use crate::options::Options;
use crate::report::Line;

const ROUNDS: usize = 30;
const CALLS: usize = 50;

/// An order that every one of them acknowledges.
const ORDER: &str =
    r#"{"id":"A-1","quantity":2,"note":"what a message of some length would have besides"}"#;

const LANGUAGES: [&str; 5] = ["rust", "c", "go", "js", "python"];

/// One handler, loaded twice.
struct Loaded {
    _sandbox: Sandbox,
    fresh: Arc<LoadedHandler>,
    kept: Arc<LoadedHandler>,
}

pub(super) fn run(runtimes: &Runtimes, options: &Options) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for language in LANGUAGES {
        let component = component(language);
        if !component.is_file() {
            eprintln!("no handler in {language} is built: `cargo xtask guests --all` builds it");
            continue;
        }
        lines.extend(one(runtimes, language, &component, options)?);
    }
    Ok(lines)
}

fn component(language: &str) -> PathBuf {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/target");
    match language {
        "rust" => guests.join("wasm32-wasip2/release/orders.wasm"),
        _ => guests.join("languages").join(format!("orders-{language}.wasm")),
    }
}

fn one(
    runtimes: &Runtimes,
    language: &str,
    component: &Path,
    options: &Options,
) -> Result<Vec<Line>> {
    let loaded = runtimes.io.block_on(load(component))?;
    let (mut fresh, mut kept) = (Series::default(), Series::default());
    for _ in 0..options.scaled(ROUNDS) {
        fresh.add(runtimes.io.block_on(runtimes.guests.spawn(round(loaded.fresh.clone())))??);
        kept.add(runtimes.io.block_on(runtimes.guests.spawn(round(loaded.kept.clone())))??);
    }
    let name = |what: &str| format!("sandbox, orders in {language}: {what}");
    Ok(vec![
        Line::alone(name("fresh instance"), "µs", &fresh, WALL),
        Line::beside(name("kept instance, beside fresh"), "µs", (&kept, &fresh), WALL),
    ])
}

async fn load(component: &Path) -> Result<Loaded> {
    // What is compiled is kept for the next run: the largest takes half a minute.
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-compiled");
    let sandbox =
        Sandbox::new(SandboxSettings { cache: Some(cache), ..SandboxSettings::default() })?;
    let spec = |name: &str, instances| HandlerSpec {
        instances: Some(instances),
        ..HandlerSpec::new(format!("bench/{name}"), component)
    };
    let fresh = sandbox.load(spec("fresh", Instances::Fresh)).await?;
    let kept = sandbox.load(spec("kept", Instances::REUSED)).await?;
    Ok(Loaded { _sandbox: sandbox, fresh, kept })
}

async fn round(handler: Arc<LoadedHandler>) -> Result<Sample> {
    let (version, invocation) = (handler.current(), message::with_body(ORDER));
    let watch = Stopwatch::start();
    for _ in 0..CALLS {
        acknowledged(&version.call_here(invocation.clone()).await.result)?;
    }
    Ok(watch.stop(CALLS))
}
