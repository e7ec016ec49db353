//! Where installed servers and the files of running ones are kept.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Error;

/// Names the folder for installed servers; a relative path starts at the workspace.
const CACHE_VARIABLE: &str = "PUMPHOUSE_TEST_CACHE";

/// Files of servers that ended without cleaning up are removed after this long.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A file system in memory, where there is one.
const SHARED_MEMORY: &str = "/dev/shm";
/// What a disk may be full, in percent. RocketMQ takes no messages at 90 and looks every ten seconds.
const FULLEST: u64 = 80;
/// What the servers of a few tests write, in bytes.
const LEAST_ROOM: u64 = 2 << 30;

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
    directory_in(&root().join("run"), server)
}

/// The same for a server that takes nothing more on a full disk: in memory where the disk has little room.
///
/// # Errors
/// When there is little room in both.
pub(crate) fn roomy_directory(server: &'static str) -> Result<tempfile::TempDir, Error> {
    let disk = root().join("run");
    let memory = Path::new(SHARED_MEMORY).join("pumphouse-test-servers");
    if let Some(runs) = [&disk, &memory].into_iter().find(|runs| has_room(runs)) {
        return directory_in(runs, server);
    }
    let detail = format!(
        "it refuses messages on a disk that is nearly full, and those of {} and {} have less than \
         {LEAST_ROOM} bytes or are more than {FULLEST} % full; make room, or name another folder \
         in {CACHE_VARIABLE}",
        disk.display(),
        memory.display()
    );
    Err(Error::Start { server, detail })
}

/// Also false where it can't be made or asked.
fn has_room(folder: &Path) -> bool {
    let disk = std::fs::create_dir_all(folder).and_then(|()| Ok(rustix::fs::statvfs(folder)?));
    let Ok(disk) = disk else { return false };
    let (used, free) = (disk.f_blocks.saturating_sub(disk.f_bfree), disk.f_bavail);
    let is_full = used.saturating_mul(100) > FULLEST.saturating_mul(used.saturating_add(free));
    !is_full && free.saturating_mul(disk.f_frsize) >= LEAST_ROOM
}

fn directory_in(runs: &Path, server: &'static str) -> Result<tempfile::TempDir, Error> {
    std::fs::create_dir_all(runs).map_err(Error::path("creating", runs))?;
    sweep(runs);
    tempfile::Builder::new()
        .prefix(&format!("{server}-"))
        .tempdir_in(runs)
        .map_err(Error::path("creating a folder in", runs))
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
