//! The benchmarks: ratios within one run, beside their targets.

use std::path::PathBuf;

use anyhow::Result;

use crate::guests;
use crate::run;

pub(crate) fn run(only: Option<&str>) -> Result<()> {
    guests::build_some(&["bench-guest", "bare-guest", "hostile-busy", "hostile-loop", "orders"])?;
    let mut arguments = vec!["run", "--release", "-p", "pumphouse-bench", "--"];
    arguments.extend(only);
    let mut bench = run::cargo(&arguments);
    if matches!(only, None | Some("sandbox"))
        && let Some(peer) = peer()
    {
        bench.env("PUMPHOUSE_BENCH_PEER", peer);
    }
    run::run(&mut bench)
}

/// A plug-in host to compare with: a workspace of its own, with an engine of its own. None where it does not build.
fn peer() -> Option<PathBuf> {
    let folder = run::target().join("peer");
    let manifest = run::root().join("tests/peer/Cargo.toml");
    let mut build = run::cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(manifest).arg("--target-dir").arg(&folder);
    match run::run(&mut build) {
        Ok(()) => Some(folder.join("release/pumphouse-bench-peer")),
        Err(error) => {
            println!("no plug-in host to compare with: {error:#}");
            None
        }
    }
}
