//! Components, sandboxes and messages for the tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, Ended, Fault, Message, Outcome};
use pumphouse_sandbox::{
    DeployError, Grants, HandlerSpec, Limits, LoadedHandler, Sandbox, SandboxSettings,
};
use tempfile::{NamedTempFile, TempPath};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A component of the guests' workspace, which is built if it is not there.
pub(crate) fn guest(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let path = root().join("guests/target/wasm32-wasip2/release").join(format!("{name}.wasm"));
    if !path.exists() {
        BUILT.get_or_init(|| {
            let mut cargo = Command::new("cargo");
            cargo.args(["build", "--release", "--target", "wasm32-wasip2"]);
            let status = cargo.current_dir(root().join("guests")).status().expect("cargo runs");
            assert!(status.success(), "the guests do not build");
        });
    }
    assert!(path.exists(), "{} is not among the guests", path.display());
    path
}

/// A component from text.
pub(crate) fn component(text: &str) -> TempPath {
    let bytes = wat::parse_str(text).expect("a component in text");
    file(&bytes)
}

/// A file that goes when the test ends.
pub(crate) fn file(bytes: &[u8]) -> TempPath {
    let mut file = NamedTempFile::with_suffix(".wasm").expect("a temporary file");
    file.write_all(bytes).expect("room for a component");
    file.into_temp_path()
}

/// A handler from the fields of a component, as guests/hostile/wat/README.md says.
pub(crate) fn handler_with(fields: &str) -> String {
    let frame = std::fs::read_to_string(root().join("guests/hostile/wat/handler.wat"));
    frame.expect("the frame of handlers").replace(";; FIELDS", fields)
}

/// One of guests/hostile/wat/.
pub(crate) fn text_of(name: &str) -> String {
    let text = std::fs::read_to_string(root().join("guests/hostile/wat").join(name));
    text.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Settings whose compiled components are kept from one test to the next.
pub(crate) fn settings() -> SandboxSettings {
    SandboxSettings {
        cache: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled")),
        scan_interval: Duration::from_millis(50),
        ..SandboxSettings::default()
    }
}

/// The sandbox that most tests share.
pub(crate) fn shared() -> &'static Sandbox {
    static SHARED: LazyLock<Sandbox> =
        LazyLock::new(|| Sandbox::new(settings()).expect("a sandbox"));
    &SHARED
}

/// A sandbox of a test's own, for tests that keep it busy.
pub(crate) fn small() -> Sandbox {
    let settings = SandboxSettings { pool_slots: 32, ..settings() };
    Sandbox::new(settings).expect("a sandbox")
}

/// An unwatched handler with everything granted.
pub(crate) fn spec(name: &str, component: &Path) -> HandlerSpec {
    HandlerSpec {
        grants: Grants {
            logging: true,
            config: Some([("greeting".into(), "Hi".into())].into()),
            ..Grants::default()
        },
        watch: false,
        ..HandlerSpec::new(format!("test/{name}"), component)
    }
}

/// Loads a handler into the shared sandbox.
pub(crate) async fn load(
    name: &str,
    component: &Path,
    limits: Limits,
) -> Result<Arc<LoadedHandler>, DeployError> {
    shared().load(HandlerSpec { limits, ..spec(name, component) }).await
}

/// A first delivery.
pub(crate) fn invocation(id: &str, body: &str) -> Invocation {
    let message =
        Message { id: id.into(), body: body.to_owned().into_bytes().into(), ..Message::default() };
    Invocation {
        message: Arc::new(message),
        source: "orders".into(),
        subscription: "orders".into(),
        count: Count(0),
    }
}

/// One call of the version in use.
pub(crate) async fn call(handler: &LoadedHandler, body: &str) -> Ended {
    handler.begin().call(invocation("m-1", body)).await
}

/// One call that must fail.
pub(crate) async fn fault(handler: &LoadedHandler, body: &str) -> Fault {
    let ended = call(handler, body).await;
    ended.result.expect_err("a fault")
}

/// A short deadline.
pub(crate) fn within(millis: u64) -> Limits {
    Limits { deadline: Duration::from_millis(millis), ..Limits::default() }
}

/// The text of a rejection.
pub(crate) fn description(ended: &Ended) -> &str {
    match &ended.result {
        Ok(Outcome::Reject(rejection)) => &rejection.description,
        other => panic!("no rejection: {other:?}"),
    }
}

/// Tries again until something holds, for ten seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 10 s: {what}");
}

/// The log of this process: one JSON object a line. Installed at the first call.
pub(crate) fn log() -> &'static Log {
    static LOG: LazyLock<Log> = LazyLock::new(|| {
        let log = Log(Arc::default());
        let writer = log.clone();
        tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .init();
        log
    });
    &LOG
}

/// What was logged.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The lines that hold a text.
    pub(crate) fn lines_with(&self, text: &str) -> Vec<String> {
        let bytes = self.0.lock().unwrap();
        let all = String::from_utf8(bytes.clone()).unwrap();
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
