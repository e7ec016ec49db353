//! What is deployed: any bytes as a component, and any bytes in the place of compiled code.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, FaultKind, Message, Outcome};
use pumphouse_sandbox::{HandlerSpec, Sandbox, SandboxSettings};
use tokio::runtime::Runtime;

use crate::guest::{assembled, file, runtime};
use crate::mutation::spliced;

static STAGE: LazyLock<(Runtime, Sandbox)> = LazyLock::new(|| {
    let settings = SandboxSettings { pool_slots: 4, ..SandboxSettings::default() };
    (runtime(), Sandbox::new(settings).expect("a sandbox"))
});

static HONEST: LazyLock<Vec<u8>> = LazyLock::new(|| assembled("ack"));

/// Deploys any bytes; where they are taken for a handler, it is called.
///
/// # Panics
/// Where the compiler fails on them in a way of its own, or a call ends by a fault of the host's.
pub fn component(data: &[u8]) {
    let (runtime, sandbox) = &*STAGE;
    let file = file(data);
    let mut spec = HandlerSpec::new("fuzzed/component", &*file);
    (spec.watch, spec.limits.deadline) = (false, Duration::from_millis(100));
    runtime.block_on(async {
        match sandbox.load(spec).await {
            Ok(handler) => {
                let ended = handler.begin().call(message()).await;
                let kind = ended.result.err().map(|fault| fault.kind);
                assert_ne!(kind, Some(FaultKind::Host));
            }
            Err(error) => assert!(!error.to_string().contains("please report"), "{error}"),
        }
    });
}

/// Puts any bytes in the place of what a host keeps of a compiled handler, spliced into it at a place that they name; the
/// host must never run them.
///
/// # Panics
/// Where the handler does not answer as it did before.
pub fn artefact(data: &[u8]) {
    let home = tempfile::tempdir().expect("a folder");
    let cache = home.path().join("compiled");
    let handler = file(&HONEST);
    answers(&cache, &handler);
    for kept in files(&cache) {
        let good = std::fs::read(&kept).expect("what was kept");
        // As one replaces a file: who writes into one that a host has mapped could as well write its memory.
        let beside = kept.with_extension("fuzzed");
        std::fs::write(&beside, spliced(&good, data)).expect("room for it");
        std::fs::rename(&beside, &kept).expect("in its place");
    }
    answers(&cache, &handler);
}

fn answers(cache: &Path, component: &Path) {
    let settings = SandboxSettings {
        cache: Some(cache.to_owned()),
        pool_slots: 1,
        guest_threads: Some(1),
        ..SandboxSettings::default()
    };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let mut spec = HandlerSpec::new("fuzzed/artefact", component);
    spec.watch = false;
    let ended = STAGE.0.block_on(async {
        let handler = sandbox.load(spec).await.expect("it is honest");
        handler.begin().call(message()).await
    });
    assert_eq!(ended.result, Ok(Outcome::Ack));
    sandbox.shutdown();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn message() -> Invocation {
    Invocation {
        message: Message::default().into(),
        source: "fuzzed".into(),
        subscription: "fuzzed".into(),
        count: Count(0),
    }
}
