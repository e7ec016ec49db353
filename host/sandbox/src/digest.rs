//! SHA-256, in hexadecimal.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};

/// The digest of some bytes.
pub(crate) fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A digest of what has no bytes of its own, but can be hashed.
pub(crate) fn of_hash(value: &impl Hash) -> String {
    let mut hasher = Sha(Sha256::new());
    value.hash(&mut hasher);
    hex(&hasher.0.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `Hash` in a digest that is the same in every process.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not what it is used for: the whole digest is.
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_digest_is_lowercase_hexadecimal() {
        assert_eq!(
            super::of(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_ne!(super::of_hash(&1_u32), super::of_hash(&2_u32));
    }
}
