//! Finds the Pub/Sub emulator, which is a part of Google's SDK and is not fetched by us.

use std::env;
use std::path::{Path, PathBuf};

use crate::Error;

/// Names the emulator's start script where it is in no usual place.
const SCRIPT_VARIABLE: &str = "PUMPHOUSE_PUBSUB_EMULATOR";

/// The script within an SDK.
const SCRIPT: &str = "platform/pubsub-emulator/bin/cloud-pubsub-emulator";

/// Where packages and installers put the SDK; a relative one is in the home folder.
const PLACES: [&str; 6] = [
    "/usr/lib/google-cloud-sdk",
    "google-cloud-sdk",
    "/opt/google-cloud-sdk",
    "/usr/local/google-cloud-sdk",
    "/usr/share/google-cloud-sdk",
    "/snap/google-cloud-cli/current",
];

const JAR_PREFIX: &str = "cloud-pubsub-emulator-";
const JAR_SUFFIX: &str = "-all.jar";

/// The start script of the emulator.
pub(crate) fn pubsub_script() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(SCRIPT_VARIABLE) {
        return existing(PathBuf::from(named));
    }
    sdks()
        .map(|sdk| sdk.join(SCRIPT))
        .find(|script| script.is_file())
        .ok_or_else(|| Error::MissingEmulator { place: "any usual place".to_owned() })
}

/// The program beside the script. The script only builds a command line around it, without our
/// bounds on memory.
pub(crate) fn pubsub_jar(script: &Path) -> Option<PathBuf> {
    let script = script.canonicalize().ok()?;
    let folder = script.ancestors().nth(2)?.join("lib");
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| is_jar(path))
}

fn is_jar(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(JAR_PREFIX) && name.ends_with(JAR_SUFFIX)
}

/// A name that leads nowhere is not replaced by a guess: a test would run on another version.
fn existing(named: PathBuf) -> Result<PathBuf, Error> {
    if named.is_file() {
        return Ok(named);
    }
    Err(Error::MissingEmulator { place: format!("{SCRIPT_VARIABLE}={}", named.display()) })
}

fn sdks() -> impl Iterator<Item = PathBuf> {
    let home = env::home_dir().unwrap_or_default();
    PLACES.iter().map(move |place| home.join(place)).chain(beside_gcloud())
}

/// `gcloud` on the search path is often a link into the SDK.
fn beside_gcloud() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let gcloud = env::split_paths(&path).map(|folder| folder.join("gcloud"));
    let real = gcloud.filter_map(|candidate| candidate.canonicalize().ok()).next()?;
    real.ancestors().nth(2).map(Path::to_path_buf)
}
