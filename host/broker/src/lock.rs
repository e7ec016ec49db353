//! One host to a state directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::error::BrokerError;

const FILE: &str = "broker.lock";

/// The directory is ours until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the directory, which must exist.
    ///
    /// # Errors
    /// Another process has it, or the lock file can't be made.
    pub(crate) fn take(directory: &Path) -> Result<Self, BrokerError> {
        let unusable = |source| BrokerError::Directory { directory: directory.to_owned(), source };
        let mut file = open(&directory.join(FILE)).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {
                // The number only helps a person who meets the lock; on a full disk there is none.
                let _ = write_pid(&mut file);
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => Err(BrokerError::InUse {
                directory: directory.to_owned(),
                pid: read_pid(&mut file),
            }),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
