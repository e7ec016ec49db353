//! Where installed servers and the files of running ones are kept.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Error;

/// Names the folder for installed servers; a relative path starts at the workspace.
const CACHE_VARIABLE: &str = "PUMPHOUSE_TEST_CACHE";

/// Files of servers that ended without cleaning up are removed after this long.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder for everything that is fetched.
pub(crate) fn root() -> PathBuf {
    if let Some(named) = env::var_os(CACHE_VARIABLE) {
        return workspace().join(named);
    }
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace().join(target).join("test-servers")
}

fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_path_buf()
}

/// A folder for one running server, removed with its handle.
pub(crate) fn run_directory(server: &'static str) -> Result<tempfile::TempDir, Error> {
    let runs = root().join("run");
    std::fs::create_dir_all(&runs).map_err(Error::path("creating", &runs))?;
    sweep(&runs);
    tempfile::Builder::new()
        .prefix(&format!("{server}-"))
        .tempdir_in(&runs)
        .map_err(Error::path("creating a folder in", &runs))
}

/// Best effort: what can't be read or removed now is tried again by the next start.
fn sweep(runs: &Path) {
    let Ok(entries) = std::fs::read_dir(runs) else { return };
    for entry in entries.flatten().filter(|entry| is_stale(&entry.path())) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn is_stale(path: &Path) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|then| SystemTime::now().duration_since(then).ok());
    age.is_some_and(|age| age > STALE_AFTER)
}
