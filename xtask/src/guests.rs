//! The WebAssembly components: a workspace of their own, for a target of their own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::languages;
use crate::run::{cargo, output, root, run, target};

const TARGET: &str = "wasm32-wasip2";

/// Builds every component into `guests/target/wasm32-wasip2/release`.
pub(crate) fn build() -> Result<()> {
    ensure_target()?;
    println!("building the guest components (about a minute the first time)");
    run(cargo(&["build", "--release", "--target", TARGET]).current_dir(root().join("guests")))
}

/// Builds those in other languages, too.
pub(crate) fn build_all() -> Result<()> {
    build()?;
    run(&mut cargo(&["build", "-p", "pumphouse", "--no-default-features"]))?;
    languages::build(&pumphouse())
}

/// The host's binary, as cargo leaves it. It makes components of modules.
pub(crate) fn pumphouse() -> PathBuf {
    target().join("debug/pumphouse")
}

/// Builds some packages of them.
pub(crate) fn build_some(packages: &[&str]) -> Result<()> {
    ensure_target()?;
    let mut arguments = vec!["build", "--quiet", "--release", "--target", TARGET];
    arguments.extend(packages.iter().flat_map(|package| ["-p", *package]));
    run(cargo(&arguments).current_dir(root().join("guests")))
}

/// The native tests of the SDK, and what must hold of the built components.
pub(crate) fn test() -> Result<()> {
    run(cargo(&["test"]).current_dir(root().join("guests")))
}

fn ensure_target() -> Result<()> {
    if installed().is_ok_and(|there| there) {
        return Ok(());
    }
    if run(Command::new("rustup").args(["target", "add", TARGET])).is_err() {
        bail!("the Rust target {TARGET} is needed for the guests: install it for your toolchain");
    }
    Ok(())
}

fn installed() -> Result<bool> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let libraries = std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET);
    Ok(libraries.is_dir())
}
