//! What all trials share: one sandbox, as one host has, and a neighbour in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use pumphouse_sandbox::{
    CompileWorker, Compiling, HandlerSpec, LoadedHandler, Sandbox, SandboxSettings,
};
use tempfile::TempDir;

use crate::generated;
use crate::row::{Component, Row};
use crate::rows;
use crate::scene::Scene;

/// The argument that makes this program a compile worker.
pub(crate) const WORKER: &str = "compile-worker";

/// Of a debug build, too.
const COMPILE_TIME: Duration = Duration::from_secs(30);

/// One for the whole run.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    /// Of a tenant of its own, honest, and always at work.
    pub(crate) neighbour: Scene,
    folder: TempDir,
    files: AtomicUsize,
}

impl World {
    pub(crate) async fn new() -> Result<Arc<Self>> {
        let folder = tempfile::tempdir()?;
        let settings = SandboxSettings {
            scan_interval: Duration::from_millis(50),
            ..SandboxSettings::default()
        };
        let sandbox = Sandbox::new(settings)?;
        let path = folder.path().join("neighbour.wasm");
        std::fs::write(&path, generated::honest()?)?;
        let neighbour = sandbox.load(HandlerSpec::new("neighbour/honest", path)).await?;
        let neighbour = Scene::start(neighbour).await?;
        Ok(Arc::new(Self { sandbox, neighbour, folder, files: AtomicUsize::new(0) }))
    }

    /// The file of a component, under a name of its own, so that it can be replaced.
    pub(crate) fn file(&self, component: &Component) -> Result<PathBuf> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.wasm"));
        match component {
            Component::Built(built) => drop(std::fs::copy(built, &path)?),
            Component::Made(bytes) => std::fs::write(&path, bytes)?,
        }
        Ok(path)
    }

    /// Loads a row's handler from there, for the row's own tenant.
    pub(crate) async fn load(&self, row: &Row, path: &Path) -> Result<Arc<LoadedHandler>> {
        Ok(self.sandbox.load(spec(row, path)).await?)
    }
}

/// As a host has it: what is compiled is compiled in a process of its own, which is this very program.
pub(crate) fn settings() -> SandboxSettings {
    let worker = CompileWorker { time: COMPILE_TIME, ..CompileWorker::this_program(WORKER) };
    SandboxSettings { compiling: Compiling::Worker(worker), ..SandboxSettings::default() }
}

/// Tenants are named after their rows.
pub(crate) fn spec(row: &Row, path: &Path) -> HandlerSpec {
    HandlerSpec {
        limits: row.limits,
        grants: row.grants.clone(),
        ..HandlerSpec::new(format!("{}/handler", row.name.replace(' ', "-")), path)
    }
}

/// Puts another component in the place of a file, in one step.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path).with_context(|| path.display().to_string())
}

/// The folder of the guests' workspace where they are built to.
pub(crate) fn guest(name: &str) -> Result<PathBuf> {
    match rows::built(name)?.pop() {
        Some(Component::Built(path)) => Ok(path),
        Some(Component::Made(_)) | None => anyhow::bail!("{name} is not a built guest"),
    }
}
