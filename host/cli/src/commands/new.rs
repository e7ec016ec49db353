//! `pumphouse new`: a handler project that builds and passes its own test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::args::New;
use crate::exit::{Exit, say};

/// The project, with `{name}` in place of its name.
const PROJECT: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    (".cargo/config.toml", include_str!("../../../../guests/.cargo/config.toml")),
    (".gitignore", "/target\n/state\n*.wasm\n"),
    ("src/lib.rs", include_str!("../../template/lib.rs.in")),
    ("message.json", include_str!("../../template/message.json.in")),
    ("README.md", include_str!("../../template/README.md.in")),
];

/// The SDK travels inside the binary, so that a project is built with the SDK of the host that made it.
const SDK: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("../../../../guests/sdk/Cargo.toml")),
    ("src/lib.rs", include_str!("../../../../guests/sdk/src/lib.rs")),
    ("src/message.rs", include_str!("../../../../guests/sdk/src/message.rs")),
    ("src/outcome.rs", include_str!("../../../../guests/sdk/src/outcome.rs")),
    ("src/log.rs", include_str!("../../../../guests/sdk/src/log.rs")),
    ("src/config.rs", include_str!("../../../../guests/sdk/src/config.rs")),
    ("src/wit.rs", include_str!("../../../../guests/sdk/src/wit.rs")),
    ("wit/handler.wit", include_str!("../../../../guests/sdk/wit/handler.wit")),
    (
        "wit/deps/config/config.wit",
        include_str!("../../../../guests/sdk/wit/deps/config/config.wit"),
    ),
    (
        "wit/deps/logging/logging.wit",
        include_str!("../../../../guests/sdk/wit/deps/logging/logging.wit"),
    ),
];

/// Names that cargo refuses, or that would stand for something else in the project.
const TAKEN: [&str; 16] = [
    "alloc",
    "core",
    "proc_macro",
    "proc-macro",
    "pumphouse-sdk",
    "serde",
    "std",
    "test",
    "crate",
    "fn",
    "impl",
    "mod",
    "self",
    "super",
    "type",
    "use",
];

pub(crate) fn new(arguments: &New) -> Result<Exit> {
    let name = checked(&arguments.name)?;
    let folder = arguments.directory.join(name);
    if folder.exists() {
        bail!("{} exists already: choose another name, or another --directory", folder.display());
    }
    for (path, text) in PROJECT {
        write(&folder.join(path), &text.replace("{name}", name))?;
    }
    for (path, text) in SDK {
        write(&folder.join("sdk").join(path), text)?;
    }
    say(instructions(&folder, name));
    Ok(Exit::Done)
}

/// A name that cargo, the file system and the configuration all take.
fn checked(name: &str) -> Result<&str> {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if TAKEN.contains(&name) {
        bail!("{name:?} can't be a project's name: it means something else to cargo or to Rust");
    }
    if !starts || !name.chars().all(fits) || name.len() > 64 {
        bail!(
            "{name:?} can't be a project's name: lower-case letters, digits, `-` and `_`, a letter first, at most 64"
        );
    }
    Ok(name)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{} can't be made", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
}

fn instructions(folder: &Path, name: &str) -> String {
    let component: PathBuf =
        Path::new("target/wasm32-wasip2/release").join(format!("{}.wasm", name.replace('-', "_")));
    format!(
        "made {folder}

  cd {folder}
  cargo test                                              # the handler's own test, natively
  rustup target add wasm32-wasip2                         # once
  cargo build --release --target wasm32-wasip2            # the component
  pumphouse invoke {component} message.json

README.md there says how to deploy it.",
        folder = folder.display(),
        component = component.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_cargo_takes() {
        for good in ["orders", "order-audit", "a1_b"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in ["", "Orders", "1st", "../up", "a b", "test", "self", "pumphouse-sdk", "-x"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
