//! The key that says which compiled components are this host's own.
//!
//! It lies outside the folder that they are kept in: who can write that folder, and not read the key, can put nothing
//! there that the host takes for its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::digest;

/// A block of the hash: more would be hashed down to half of one.
const LENGTH: usize = 64;
const OTHERS: u32 = 0o077;

/// A key for HMAC-SHA-256.
pub(crate) struct Seal([u8; LENGTH]);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The key of that file, which is made where there is none. True where it is a new one.
    ///
    /// # Errors
    /// It can't be read or made, or is not this user's alone. The text says what to do.
    pub(crate) fn open(path: &Path) -> Result<(Self, bool), String> {
        let failed =
            |error: io::Error| format!("its key {} can't be used: {error}", path.display());
        if let Some(key) = read(path)? {
            return Ok((Self(key), false));
        }
        make(path).map_err(failed)?;
        // Another host may have been quicker: the key is the one that is there.
        let key = read(path)?.ok_or_else(|| failed(io::Error::other("it was removed again")))?;
        Ok((Self(key), true))
    }

    /// What only who has the key can make of these bytes.
    pub(crate) fn of(&self, bytes: &[u8]) -> String {
        let mut mac = self.mac();
        mac.update(bytes);
        digest::hex(&mac.finalize().into_bytes())
    }

    /// Whether that was made of these bytes with this key. Takes as long where it was nearly so.
    pub(crate) fn fits(&self, bytes: &[u8], made: &str) -> bool {
        let mut mac = self.mac();
        mac.update(bytes);
        digest::from_hex(made).is_some_and(|made| mac.verify_slice(&made).is_ok())
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new(&self.0.into())
    }
}

/// None where there is no key, or half of one.
fn read(path: &Path) -> Result<Option<[u8; LENGTH]>, String> {
    let failed = |error: io::Error| format!("its key {} can't be read: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & OTHERS != 0 {
        return Err(format!(
            "its key {} is not the host's user's alone (owner {}, mode {:o}): who knows it can plant machine code; \
             remove it, and the host makes another",
            path.display(),
            found.uid(),
            found.mode() & 0o7777
        ));
    }
    let mut key = Vec::new();
    (&file).take(LENGTH as u64 + 1).read_to_end(&mut key).map_err(failed)?;
    Ok(key.try_into().ok())
}

/// Whole or not at all: others that start at the same time see no half of it.
fn make(path: &Path) -> io::Result<()> {
    let mut key = [0; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let half = path.with_extension(format!("{}.tmp", std::process::id()));
    drop(fs::remove_file(&half));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
    file.write_all(&key)?;
    file.sync_all()?;
    if fs::hard_link(&half, path).is_err() && !matches!(read(path), Ok(Some(_))) {
        fs::rename(&half, path)?;
    }
    drop(fs::remove_file(&half));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_for_this_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache.key");
        let (first, new) = Seal::open(&path).unwrap();
        let (second, again) = Seal::open(&path).unwrap();
        assert!(new && !again);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(second.fits(b"code", &first.of(b"code")));
        assert!(!second.fits(b"c0de", &first.of(b"code")));
        assert!(!second.fits(b"code", "") && !second.fits(b"code", "zz"));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_key_makes_another_seal() {
        let home = tempfile::tempdir().unwrap();
        let [one, other] =
            ["a.key", "b.key"].map(|name| Seal::open(&home.path().join(name)).unwrap().0);
        assert!(!one.fits(b"code", &other.of(b"code")));
    }

    #[test]
    fn half_a_key_is_replaced_and_one_that_others_can_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache.key");
        fs::write(&path, b"half").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Seal::open(&path).unwrap().1);
        assert_eq!(fs::metadata(&path).unwrap().len(), LENGTH as u64);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Seal::open(&path).unwrap_err().contains("remove it"));
    }
}
