//! One host on a state directory.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Held as long as the host lives; the system lets go of it when the process ends, however it ends.
pub(crate) struct StateLock(#[expect(dead_code, reason = "held, not read")] File);

impl StateLock {
    /// Makes the directory where it is not there, and takes it.
    pub(crate) fn take(state: &Path) -> Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(state)
            .with_context(|| format!("host.state {} can't be made", state.display()))?;
        let path = state.join("host.lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("{} can't be opened", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => bail!(
                "another host is using host.state {}: stop it, or give this one another directory",
                state.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("{} can't be locked", path.display()))
            }
        }
    }
}
