//! The boundary to guests: a guest that answers with any bytes, from any place in its memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, FaultKind, Message};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};
use tokio::runtime::Runtime;

struct Stage {
    runtime: Runtime,
    handler: Arc<LoadedHandler>,
    /// Stops when it is dropped.
    _sandbox: Sandbox,
    _file: tempfile::TempPath,
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let runtime = runtime();
    let settings = SandboxSettings { pool_slots: 4, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let file = file(&assembled("answer-arbitrary"));
    let mut spec = HandlerSpec::new("fuzzed/guest", &*file);
    (spec.watch, spec.limits.deadline) = (false, Duration::from_secs(20));
    let handler = runtime.block_on(sandbox.load(spec)).expect("the guest is a good one");
    Stage { runtime, handler, _sandbox: sandbox, _file: file }
});

/// Has the guest answer with these bytes.
///
/// # Panics
/// Where the host ends the call by a fault that isn't the guest's.
pub fn guest(data: &[u8]) {
    let body = data.to_vec().into();
    let message = Message { id: "m".into(), body, ..Message::default() };
    let call = Invocation {
        message: message.into(),
        source: "fuzzed".into(),
        subscription: "fuzzed".into(),
        count: Count(0),
    };
    let ended = STAGE.runtime.block_on(async { STAGE.handler.begin().call(call).await });
    if let Err(fault) = ended.result {
        let its_own = [FaultKind::InvalidResult, FaultKind::ResultSize, FaultKind::Trap];
        assert!(its_own.contains(&fault.kind), "{fault:?}");
    }
}

/// Few threads: fuzzing runs many of these processes beside each other.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One of the handlers in text, in its frame.
pub(crate) fn assembled(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/hostile/wat");
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a component in text");
    let fields = read(folder.join("handlers").join(name).with_extension("wat"));
    let text = read(folder.join("handler.wat")).replace(";; FIELDS", &fields);
    wat::parse_str(text).expect("a component")
}

/// A file that goes when it is dropped.
pub(crate) fn file(bytes: &[u8]) -> tempfile::TempPath {
    let path =
        tempfile::Builder::new().suffix(".wasm").tempfile().expect("a file").into_temp_path();
    std::fs::write(&path, bytes).expect("room for it");
    path
}
