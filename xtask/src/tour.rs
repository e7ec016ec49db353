//! The tour: what a message goes through, shown on the embedded broker by the host as a user runs it.
//!
//! Every step says what it does, shows what came of it, and fails where that is not what was expected.
#![expect(clippy::indexing_slicing, reason = "a JSON value that is indexed answers null")]

mod host;
mod steps;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::guests;
use crate::run::{cargo, run, target};
use host::Host;

/// The components of the tour, by package, with the file name that each is built to.
const COMPONENTS: [(&str, &str); 6] = [
    ("orders", "orders.wasm"),
    ("conformance-guest", "conformance.wasm"),
    ("version-one", "version_one.wasm"),
    ("version-two", "version_two.wasm"),
    ("hostile-panic", "hostile_panic.wasm"),
    ("hostile-loop", "hostile_loop.wasm"),
];

pub(crate) fn tour() -> Result<()> {
    println!("1/2  building the handlers of the tour for wasm32-wasip2");
    guests::build_some(&COMPONENTS.map(|(package, _)| package))?;
    println!("\n2/2  building the host without the cloud SDKs");
    println!("     (with the WebAssembly engine in it, which takes a few minutes the first time)");
    run(&mut cargo(&["build", "-p", "pumphouse", "--no-default-features"]))?;
    let began = Instant::now();
    let mut host = Host::prepare(folder()?, &COMPONENTS.map(|(_, file)| file))?;
    steps::all(&mut host)?;
    host.stop()?;
    println!("\nEverything above was as expected; the tour took {:.0?}.", began.elapsed());
    println!("{}", what_next(&host));
    Ok(())
}

/// A fresh folder for the tour; the one of the last tour makes room.
fn folder() -> Result<PathBuf> {
    let folder = target().join("quickstart");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("{} can't be cleared", folder.display()))?;
    }
    std::fs::create_dir_all(folder.join("handlers"))?;
    Ok(folder)
}

fn what_next(host: &Host) -> String {
    let folder = host.folder().display();
    let binary = host.binary();
    let binary = binary.display();
    format!(
        "
What to try next, with the configuration of the tour:

  {binary} check {folder}/pumphouse.toml
  {binary} run {folder}/pumphouse.toml
  {binary} publish {folder}/pumphouse.toml orders --body '{{\"id\":\"A-1\",\"quantity\":2}}'
  {binary} new my-handler          # a handler of your own; docs/handlers.md goes on from there"
    )
}
