//! The components that `cargo xtask bench` builds first.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A handler of the SDK, with the standard library and so with WASI.
    Wasip2,
    /// A handler that imports nothing.
    WithoutWasi,
}

impl Guest {
    pub(crate) const ALL: [Self; 2] = [Self::Wasip2, Self::WithoutWasi];

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

/// The component with a number in a section of its own: the same code, and another component.
pub(crate) fn numbered(guest: Guest, number: usize) -> Result<Vec<u8>> {
    let path = guest.component()?;
    let mut bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let number = format!("{number:08}");
    // A custom section: its id, its length, the length of its name, its name, and what it holds.
    bytes.extend([0, 15, 6]);
    bytes.extend(b"serial");
    bytes.extend(number.as_bytes());
    Ok(bytes)
}

/// One of the guests' workspace.
pub(crate) fn component(file: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("../../guests/target/wasm32-wasip2/release").join(file);
    ensure!(path.is_file(), "{} is missing: run `cargo xtask guests`", path.display());
    Ok(path)
}
