//! A component's file: what tells one state of it from another, and reading one state whole.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::errors::DeployError;

/// What is seen of a file without reading it. Links are followed, so that a swapped link shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// There is no such file, or it can't be looked at.
    Missing,
    /// There is one.
    There { device: u64, inode: u64, size: u64, modified: (i64, i64), changed: (i64, i64) },
}

impl Look {
    pub(crate) fn at(path: &Path) -> Self {
        fs::metadata(path).as_ref().map_or(Self::Missing, Self::of)
    }

    /// Whether there is one of more bytes.
    pub(crate) fn is_larger_than(self, bytes: u64) -> bool {
        matches!(self, Self::There { size, .. } if size > bytes)
    }

    fn of(found: &Metadata) -> Self {
        Self::There {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Reads a file whole, unless it is too large or changes meanwhile.
///
/// # Errors
/// It can't be read, is too large, or changed.
pub(crate) fn read(path: &Path, most: u64) -> Result<(Vec<u8>, Look), DeployError> {
    let failed = |error: io::Error| DeployError::Read { path: path.to_owned(), error };
    // Looked at before it is opened: opening a pipe waits for its other end, for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    let mut file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    if found.len() > most {
        let (path, size) = (path.to_owned(), found.len());
        return Err(DeployError::TooLarge { path, size, limit: most, key: None });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    file.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let before = Look::of(&found);
    if Look::of(&file.metadata().map_err(failed)?) != before || bytes.len() as u64 != found.len() {
        return Err(DeployError::Unsettled { path: path.to_owned() });
    }
    Ok((bytes, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_replace_a_file_looks_different() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        let mut looks = vec![Look::at(&path)];
        fs::write(&path, "1").unwrap();
        looks.push(Look::at(&path));
        fs::write(home.path().join("b"), "2").unwrap();
        fs::rename(home.path().join("b"), &path).unwrap();
        looks.push(Look::at(&path));
        fs::write(&path, "three").unwrap();
        looks.push(Look::at(&path));
        assert_eq!(looks[0], Look::Missing);
        assert!(looks.windows(2).all(|pair| pair[0] != pair[1]), "{looks:?}");
        assert_eq!(looks[3], Look::at(&path));
    }

    #[test]
    fn a_file_that_is_too_large_or_no_file_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert!(matches!(read(&path, 4), Err(DeployError::TooLarge { size: 5, limit: 4, .. })));
        assert_eq!(read(&path, 5).unwrap().0, b"12345");
        assert!(matches!(read(home.path(), 5), Err(DeployError::Read { .. })));
    }
}
