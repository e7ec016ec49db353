//! The binary and the guests, built where they are not there yet.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Names a binary that is built already, with the transports that this crate was built with.
const BUILT: &str = "PUMPHOUSE_BINARY";

/// What a test process calls its own name of the binary, before its id.
const OWN: &str = "pumphouse-for-tests-";

static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// `pumphouse`: the one that is named, else built with the transports that this crate was built with. A name of its own,
/// so that a build with others doesn't replace it under the tests.
#[must_use]
pub fn binary() -> &'static Path {
    BINARY.get_or_init(|| {
        let built = std::env::var_os(BUILT).map_or_else(build, PathBuf::from);
        let own = shared_folder(&built).join(format!("{OWN}{}", std::process::id()));
        let _ = std::fs::remove_file(&own);
        std::fs::hard_link(&built, &own).expect("a second name for the binary");
        own
    })
}

/// Removes the second name of this test process.
pub(crate) fn forget_own() {
    if let Some(own) = BINARY.get() {
        let _ = std::fs::remove_file(own);
    }
}

/// A folder beside the built binary, kept from one run to the next.
pub(crate) fn shared_folder(binary: &Path) -> PathBuf {
    let folder = binary.parent().and_then(Path::parent).expect("a target folder").join("e2e");
    std::fs::create_dir_all(&folder).expect("a folder in the target folder");
    forget_ended(&folder);
    folder
}

/// Removes the second names that earlier test processes left.
fn forget_ended(folder: &Path) {
    let entries = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let id = name.strip_prefix(OWN);
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-p", "pumphouse", "--message-format=json-render-diagnostics"]);
    if cfg!(not(all(feature = "sqs", feature = "pubsub", feature = "rocketmq"))) {
        cargo.arg("--no-default-features");
        for (with, feature) in [
            (cfg!(feature = "sqs"), "sqs"),
            (cfg!(feature = "pubsub"), "pubsub"),
            (cfg!(feature = "rocketmq"), "rocketmq"),
        ] {
            if with {
                cargo.args(["--features", feature]);
            }
        }
    }
    // Build scripts look at what is said of this package, and what depends on them would be compiled anew.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"CARGO_PKG_") || bytes.starts_with(b"CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo.current_dir(root()).stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "the binary does not build");
    let text = String::from_utf8(output.stdout).expect("text");
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executable = messages
        .filter(|message| message["target"]["name"] == "pumphouse")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.expect("cargo names the executable")
}

/// The folder of the built guests.
#[must_use]
pub fn guests() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = root().join("guests/target/wasm32-wasip2/release");
        let needed = [
            "conformance",
            "orders",
            "version_one",
            "version_two",
            "greeter",
            "secrets",
            "http",
            "hostile_probe",
            "hostile_loop",
        ];
        if needed.iter().any(|name| !folder.join(name).with_extension("wasm").exists()) {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--release", "--target", "wasm32-wasip2"]);
            // Where they go is the guests' own matter.
            cargo.env_remove("CARGO_TARGET_DIR").current_dir(root().join("guests"));
            assert!(cargo.status().expect("cargo runs").success(), "the guests do not build");
        }
        folder
    });
    folder.clone()
}

/// A built guest by its name.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    let path = guests().join(name).with_extension("wasm");
    assert!(path.exists(), "{} is not among the guests", path.display());
    path
}

/// A component in text: a file of `guests/hostile/wat`, put into the frame of a handler where it is one of
/// `handlers/`.
#[must_use]
pub fn component_text(name: &str) -> String {
    let folder = root().join("guests/hostile/wat");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).expect("a component in text");
    let text = read(name);
    if name.starts_with("handlers/") {
        return read("handler.wat").replace(";; FIELDS", &text);
    }
    text
}

/// A component of text.
#[must_use]
pub fn assembled(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a component")
}

/// What a version is known by: the SHA-256 of the file.
#[must_use]
pub fn digest(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a component");
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
