//! What can go wrong with the broker itself. What goes wrong with a message is in the ports' own errors.

use std::path::PathBuf;
use std::sync::Arc;

/// Why the broker could not be opened, or a queue not be made.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Another host has the directory.
    #[error(
        "state directory {} is in use by another host{}: stop it, or use another directory",
        directory.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// The other host's process, where it is known.
        pid: Option<u32>,
    },
    /// The directory can't be made, read or written.
    #[error("state directory {} can't be used", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store was written by a version of Pumphouse that came later.
    #[error(
        "broker store {} has schema {found}, newer than the {known} that this version knows: \
         use a newer version of pumphouse, or another directory",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The latest schema of this version.
        known: i64,
    },
    /// The store can't be opened or read.
    #[error("broker store {} can't be opened", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The store did not take an operation.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name that no queue can have.
    #[error("queue name {0:?} is refused: {1}")]
    Name(String, &'static str),
}

/// Why the store did not take an operation. None of it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no room on the disk. The operation can be asked again when there is.
    #[error(
        "the disk of broker store {0} is full: free some space, nothing that was confirmed is lost"
    )]
    Full(Arc<str>),
    /// Writing failed in a way after which nobody knows what is on the disk. Only opening the store anew, which
    /// reads what is really there, can tell.
    #[error("broker store {0} failed and takes nothing more until the host is restarted: {1}")]
    Failed(Arc<str>, Arc<str>),
    /// The broker was closed.
    #[error("the broker is closed")]
    Closed,
}
