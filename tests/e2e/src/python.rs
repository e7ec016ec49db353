//! Google's own client for Pub/Sub, which is in Python: fetched once, into a folder that all tests share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::build::root;
use crate::cli::{Ran, run_within};

const REQUIREMENTS: &str = include_str!("../python/requirements.txt");
/// Names the folder for what tests fetch; a relative path starts at the repository.
const CACHE_VARIABLE: &str = "PUMPHOUSE_TEST_CACHE";
const FETCHING: Duration = Duration::from_secs(300);

/// Runs a script with the client, for at most so long. It finds the emulator as Google's clients do.
///
/// # Panics
/// When Python, its module `venv` or the client is not to be had, or the script does not end with 0.
#[must_use]
pub fn run(limit: Duration, emulator: &str, script: &str, arguments: &[&str]) -> Ran {
    let mut python = Command::new(interpreter());
    python.args(["-c", script]).args(arguments).env("PUBSUB_EMULATOR_HOST", emulator);
    run_within(limit, &mut python, "").ok()
}

fn interpreter() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(ensure).join("bin/python")
}

fn ensure() -> PathBuf {
    let cache = cache();
    fs::create_dir_all(&cache).expect("a folder");
    let folder = cache.join("google-pubsub-python");
    // Another process may be fetching it. The lock ends with this file's handle.
    let lock = File::create(folder.with_extension("lock")).expect("a lock file");
    lock.lock().expect("a lock");
    let stamp = folder.join(".installed");
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == REQUIREMENTS) {
        fetch(&folder);
        fs::write(stamp, REQUIREMENTS).expect("a stamp");
    }
    folder
}

fn fetch(folder: &Path) {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(folder);
    let made = run_within(FETCHING, &mut venv, "");
    assert_eq!(
        made.code, 0,
        "Python's module venv is needed (the package python3-venv): {made:#?}"
    );
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).expect("a list of requirements");
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    let _ = run_within(FETCHING, pip.arg(&requirements), "").ok();
}

fn cache() -> PathBuf {
    if let Some(named) = std::env::var_os(CACHE_VARIABLE) {
        return root().join(named);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target).join("test-servers")
}
