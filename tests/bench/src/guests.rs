//! The components that `cargo xtask bench` builds first.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A handler of the SDK, with the standard library and so with WASI.
    Wasip2,
    /// A handler that imports nothing.
    WithoutWasi,
}

impl Guest {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Wasip2 => "wasip2",
            Self::WithoutWasi => "without WASI",
        }
    }

    pub(crate) fn component(self) -> Result<PathBuf> {
        let file = match self {
            Self::Wasip2 => "bench.wasm",
            Self::WithoutWasi => "bare.wasm",
        };
        component(file)
    }
}

/// One of the guests' workspace.
pub(crate) fn component(file: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("../../guests/target/wasm32-wasip2/release").join(file);
    ensure!(path.is_file(), "{} is missing: run `cargo xtask guests`", path.display());
    Ok(path)
}
