//! What takes minutes or longer: the figures of the hostile guests, the soak, fuzzing that follows coverage.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::guests;
use crate::run::{cargo, root, run};

const MINUTES: &str = "1";
const SECONDS: &str = "60";

/// Measures the hostile guests and writes their table.
pub(crate) fn hostile() -> Result<()> {
    guests::build()?;
    let mut suite = cargo(&["test", "--release", "-p", "pumphouse-hostile", "--test", "hostile"]);
    run(suite.env("PUMPHOUSE_WRITE_HOSTILE", "figures"))
}

/// `[--minutes N]`
pub(crate) fn soak(arguments: &[&str]) -> Result<()> {
    let minutes = match arguments {
        [] => MINUTES,
        ["--minutes", minutes] => minutes,
        _ => bail!("usage: cargo xtask soak [--minutes N]"),
    };
    guests::build()?;
    run(&mut cargo(&["run", "-p", "pumphouse-hostile", "--bin", "soak", "--", minutes]))
}

/// `[TARGET] [--seconds N]`
pub(crate) fn fuzz(arguments: &[&str]) -> Result<()> {
    let (only, seconds) = match arguments {
        [] => (None, SECONDS),
        ["--seconds", seconds] => (None, *seconds),
        [target] => (Some(*target), SECONDS),
        [target, "--seconds", seconds] => (Some(*target), *seconds),
        _ => bail!("usage: cargo xtask fuzz [TARGET] [--seconds N]"),
    };
    let seconds: u64 = seconds.parse().context("the number of seconds")?;
    let targets = targets()?;
    if let Some(only) = only {
        ensure!(targets.iter().any(|it| it == only), "there are {}", targets.join(", "));
    }
    for target in targets.iter().filter(|it| only.is_none_or(|only| it.as_str() == only)) {
        run(&mut fuzz_one(target, seconds))?;
    }
    Ok(())
}

/// New inputs go to a folder that is not committed; the committed ones are where it begins.
fn fuzz_one(target: &str, seconds: u64) -> Command {
    let found = format!("fuzz/target/corpus/{target}");
    let committed = format!("fuzz/corpus/{target}");
    // A folder that is there already is as good.
    let _ = std::fs::create_dir_all(root().join(&found));
    let mut command = Command::new("cargo");
    // Without this toolchain's own variables, which would win over the other's.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").current_dir(root());
    command.args([
        "+nightly",
        "fuzz",
        "run",
        "--sanitizer",
        "none",
        target,
        &found,
        &committed,
        "--",
    ]);
    let bounds =
        [format!("-max_total_time={seconds}"), "-max_len=8192".into(), "-timeout=60".into()];
    command.args(bounds).arg("-rss_limit_mb=4096");
    command
}

/// The programs in `fuzz/`.
fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}
