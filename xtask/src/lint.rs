//! What must hold of the text of the program.

use anyhow::Result;

use crate::run::{cargo, root, run};

pub(crate) fn lint() -> Result<()> {
    run_in_both(&["fmt", "--all", "--check"])?;
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    run(cargo(&["clippy", "--all-targets", "--", "-D", "warnings"])
        .current_dir(root().join("guests")))?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

fn run_in_both(arguments: &[&str]) -> Result<()> {
    run(&mut cargo(arguments))?;
    run(cargo(arguments).current_dir(root().join("guests")))
}
