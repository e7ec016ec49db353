//! What all trials share: the clock, the sandbox with its guests, and the servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::Handler;
use pumphouse_pump::SystemClock;
use pumphouse_sandbox::{Grants, HandlerSpec, Limits, Sandbox, SandboxSettings};
use tempfile::TempDir;

#[cfg(feature = "pubsub")]
use pumphouse_test_brokers::PubsubEmulator;
#[cfg(feature = "sqs")]
use pumphouse_test_brokers::{ElasticMq, Fauxqs, Storage};
#[cfg(any(feature = "pubsub", feature = "rocketmq", feature = "sqs"))]
use tokio::sync::OnceCell;

#[cfg(feature = "rocketmq")]
use crate::rows::rocketmq::Service;

/// Calls of all trials at once; each subscription has its own limit below it.
const GUESTS: usize = 256;

/// One for the whole run.
pub(crate) struct World {
    pub(crate) clock: Arc<dyn Clock>,
    /// Does what the message's body says.
    pub(crate) steered: Arc<dyn Handler>,
    /// Rejects a body that is no text as unacceptable.
    pub(crate) text_only: Arc<dyn Handler>,
    runs: TempDir,
    _sandbox: Sandbox,
    #[cfg(feature = "sqs")]
    fauxqs: OnceCell<Fauxqs>,
    #[cfg(feature = "sqs")]
    elasticmq: OnceCell<ElasticMq>,
    #[cfg(feature = "pubsub")]
    emulator: OnceCell<PubsubEmulator>,
    #[cfg(feature = "rocketmq")]
    rocketmq: OnceCell<Arc<Service>>,
}

impl World {
    pub(crate) async fn new() -> Result<Arc<Self>> {
        let settings = SandboxSettings { pool_slots: GUESTS, ..SandboxSettings::default() };
        let sandbox = Sandbox::new(settings)?;
        let steered = sandbox.load(spec("conformance", false)).await?;
        let text_only = sandbox.load(spec("greeter", true)).await?;
        let runs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        Ok(Arc::new(Self {
            clock: Arc::new(SystemClock::new()),
            steered,
            text_only,
            runs,
            _sandbox: sandbox,
            #[cfg(feature = "sqs")]
            fauxqs: OnceCell::new(),
            #[cfg(feature = "sqs")]
            elasticmq: OnceCell::new(),
            #[cfg(feature = "pubsub")]
            emulator: OnceCell::new(),
            #[cfg(feature = "rocketmq")]
            rocketmq: OnceCell::new(),
        }))
    }

    /// A new directory, removed with what it is given to.
    pub(crate) fn directory(&self) -> Result<TempDir> {
        tempfile::tempdir_in(self.runs.path()).context("making a directory for a trial")
    }

    /// The endpoint of fauxqs, which is started for the first who asks.
    #[cfg(feature = "sqs")]
    pub(crate) async fn fauxqs(&self) -> Result<String> {
        Ok(self.fauxqs.get_or_try_init(Fauxqs::start).await?.endpoint())
    }

    /// The endpoint of ElasticMQ, which is started for the first who asks.
    #[cfg(feature = "sqs")]
    pub(crate) async fn elasticmq(&self) -> Result<String> {
        let start = || ElasticMq::start(Storage::Memory);
        Ok(self.elasticmq.get_or_try_init(start).await?.endpoint())
    }

    /// The endpoint of Google's emulator, which is started for the first who asks.
    #[cfg(feature = "pubsub")]
    pub(crate) async fn emulator(&self) -> Result<String> {
        Ok(self.emulator.get_or_try_init(PubsubEmulator::start).await?.endpoint())
    }

    /// RocketMQ, which is started for the first who asks.
    #[cfg(feature = "rocketmq")]
    pub(crate) async fn rocketmq(&self) -> Result<Arc<Service>> {
        let start = || Service::start(self.clock.clone());
        Ok(self.rocketmq.get_or_try_init(start).await?.clone())
    }
}

fn spec(guest: &str, configured: bool) -> HandlerSpec {
    HandlerSpec {
        limits: Limits {
            concurrency: GUESTS,
            deadline: Duration::from_secs(60),
            ..Limits::default()
        },
        grants: Grants {
            logging: true,
            config: configured.then(Default::default),
            ..Grants::default()
        },
        watch: false,
        ..HandlerSpec::new(format!("test/{guest}"), component(guest))
    }
}

/// The guest as it was built last; where none was, the one that is frozen beside the tests.
fn component(guest: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = root.join("guests/target/wasm32-wasip2/release").join(guest);
    let built = built.with_extension("wasm");
    if built.exists() {
        return built;
    }
    root.join("tests/frozen/handler-1.0.0").join(guest).with_extension("wasm")
}
