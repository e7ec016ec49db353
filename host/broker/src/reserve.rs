//! Room on the disk that is kept for the worst day.
//!
//! Receiving and settling write too. On a disk that is really full nothing could be handled any more, and so nothing
//! be removed to make room. Therefore some room is held by a file, which is given up when the disk is full: what is
//! there goes on then, and only what would be added is refused until the room can be held again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "broker.reserve";

/// Twice what the log grows to before it is carried over.
const BYTES: usize = 8 << 20;

/// The file that holds the room.
#[derive(Debug)]
pub(crate) struct Reserve(PathBuf);

impl Reserve {
    pub(crate) fn of(directory: &Path) -> Self {
        Self(directory.join(FILE))
    }

    /// Holds the room; whether there was so much.
    pub(crate) fn hold(&self) -> bool {
        if fs::metadata(&self.0).is_ok_and(|file| file.len() == BYTES as u64) {
            return true;
        }
        let held = self.write();
        if held.is_err() {
            self.give_up();
        }
        held.is_ok()
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::create(&self.0)?;
        let block = vec![0; 1 << 16];
        for _ in 0..BYTES / block.len() {
            file.write_all(&block)?;
        }
        file.sync_all()
    }

    /// Lets others have the room.
    pub(crate) fn give_up(&self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = %self.0.display(), %error, "the reserve could not be given up");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_held_and_given_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::of(directory.path());
        let file = directory.path().join(FILE);
        assert!(reserve.hold() && reserve.hold());
        assert_eq!(fs::metadata(&file).expect("a file").len(), BYTES as u64);
        reserve.give_up();
        assert!(!file.exists());
        reserve.give_up();
        fs::write(&file, "cut short").expect("written");
        assert!(reserve.hold());
        assert_eq!(fs::metadata(&file).expect("a file").len(), BYTES as u64);
    }
}
