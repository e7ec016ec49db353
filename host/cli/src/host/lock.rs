//! One host on a state directory.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Held as long as the host lives; the system lets go of it when the process ends, however it ends.
pub(crate) struct StateLock {
    file: File,
    path: PathBuf,
}

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
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => bail!(
                "another host is using host.state {}: stop it, or give this one another directory",
                state.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("{} can't be locked", path.display()))
            }
        }
    }

    /// Whether the directory is still the one that was taken. Where it was removed or replaced, what is stored goes
    /// to files that nobody will find again, and another host may have taken the new one.
    pub(crate) fn holds(&self) -> bool {
        let identity = |data: std::fs::Metadata| (data.dev(), data.ino());
        let held = self.file.metadata().map(identity);
        matches!((held, std::fs::metadata(&self.path).map(identity)), (Ok(held), Ok(there)) if held == there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_removed_or_replaced_is_no_longer_held() {
        let home = tempfile::tempdir().expect("a folder");
        let state = home.path().join("state");
        let lock = StateLock::take(&state).expect("taken");
        assert!(lock.holds());
        assert!(StateLock::take(&state).is_err(), "by one host at a time");
        std::fs::remove_dir_all(&state).expect("removed");
        assert!(!lock.holds());
        let _other = StateLock::take(&state).expect("taken anew");
        assert!(!lock.holds());
    }
}
