//! The rows, by what they are after.

mod answers;
mod deploy;
mod seeing;
mod time;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::row::{Component, Row};

/// All of them, in the order of the table.
pub(crate) fn all() -> Vec<Row> {
    [time::rows(), answers::rows(), seeing::rows(), deploy::rows()].into_iter().flatten().collect()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A component of the guests' workspace.
pub(crate) fn built(name: &str) -> Result<Vec<Component>> {
    let path = root().join("guests/target/wasm32-wasip2/release").join(format!("{name}.wasm"));
    ensure!(path.exists(), "{} is not there; build the guests: cargo xtask guests", path.display());
    Ok(vec![Component::Built(path)])
}

/// One of `guests/hostile/wat/handlers`, in its frame.
pub(crate) fn handler(name: &str) -> Result<Vec<Component>> {
    made(&framed(&text(&format!("handlers/{name}"))?)?)
}

/// One of `guests/hostile/wat` that is whole.
pub(crate) fn whole(name: &str) -> Result<Vec<Component>> {
    made(&text(name)?)
}

pub(crate) fn text(name: &str) -> Result<String> {
    let path = root().join("guests/hostile/wat").join(name).with_extension("wat");
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The fields of a component in the frame of every handler.
pub(crate) fn framed(fields: &str) -> Result<String> {
    Ok(text("handler")?.replace(";; FIELDS", fields))
}

pub(crate) fn made(text: &str) -> Result<Vec<Component>> {
    Ok(vec![Component::Made(wat::parse_str(text)?)])
}
