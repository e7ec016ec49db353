//! The tests, with what they need.

use std::process::Command;

use anyhow::Result;

use crate::guests;
use crate::languages;
use crate::programs;
use crate::run::{cargo, run, target};

/// Packages whose tests need nothing but Rust, the cloud SDKs not even compiled.
const EMBEDDED: [&str; 9] = [
    "pumphouse-contract",
    "pumphouse-pump",
    "pumphouse-broker",
    "pumphouse-sandbox",
    "pumphouse-state",
    "pumphouse-config",
    "pumphouse-telemetry",
    "pumphouse-admin",
    "pumphouse",
];
/// What the program that starts the servers is told, so that no test waits for an installation.
const INSTALL: [&str; 2] = ["install", "all"];
/// Packages that can leave the cloud transports out.
const TRANSPORTS_OPTIONAL: [&str; 4] =
    ["pumphouse-conformance", "pumphouse-e2e", "pumphouse-fuzzing", "pumphouse-hostile"];

/// Tells the tests which binary to start: with `-p pumphouse` they would compile one anew, and most of its dependencies
/// with it.
const BINARY: &str = "PUMPHOUSE_BINARY";

fn built() -> String {
    guests::pumphouse().display().to_string()
}

/// Everything, against real servers.
pub(crate) fn everything() -> Result<()> {
    guests::build()?;
    guests::test()?;
    // All at once: a package for itself has other features of its dependencies, which would be compiled again.
    run(&mut cargo(&["build", "--workspace", "--bins", "--tests"]))?;
    run(Command::new(target().join("debug/pumphouse-test-brokers")).args(INSTALL))?;
    languages::build(&guests::pumphouse())?;
    programs::test(&["--workspace"], &[(BINARY, &built())])
}

/// What needs Rust alone.
pub(crate) fn embedded() -> Result<()> {
    guests::build()?;
    guests::test()?;
    let build = ["build", "-p", "pumphouse", "--no-default-features"];
    run(&mut cargo(&build))?;
    languages::build(&guests::pumphouse())?;
    let mut arguments = vec!["--no-default-features"];
    let packages = EMBEDDED.iter().chain(&TRANSPORTS_OPTIONAL);
    arguments.extend(packages.flat_map(|package| ["-p", *package]));
    programs::test(&arguments, &[("PUMPHOUSE_ONLY", "embedded"), (BINARY, &built())])
}

/// The conformance suite alone, writing its table.
pub(crate) fn write_conformance() -> Result<()> {
    guests::build()?;
    run(cargo(&["run", "-p", "pumphouse-test-brokers", "--"]).args(INSTALL))?;
    let mut suite = cargo(&["test", "-p", "pumphouse-conformance"]);
    run(suite.env("PUMPHOUSE_WRITE_CONFORMANCE", "1"))
}
