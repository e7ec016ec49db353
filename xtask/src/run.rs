//! Running other programs, and saying which.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// How the variables begin that tell a program of its own package.
const OWN: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// A cargo command at the top of the repository.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Build scripts look at what cargo says of this program's own package, and what depends on them would be compiled
    // anew by whoever starts cargo from elsewhere.
    for (name, _) in std::env::vars_os() {
        if OWN.iter().any(|own| name.as_encoded_bytes().starts_with(own.as_bytes())) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs to the end, showing what it prints.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let said = say(command);
    println!("\n$ {said}");
    let status = command.status().with_context(|| format!("{said} could not be started"))?;
    if !status.success() {
        bail!("{said} failed: {status}");
    }
    Ok(())
}

fn say(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// What a program prints, or why it could not be asked.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let said = say(command);
    let output = command.output().with_context(|| format!("{said} could not be started"))?;
    if !output.status.success() {
        bail!("{said} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
