//! SHA-256, in hexadecimal.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

const PIECE: usize = 64 * 1024;

/// The digest of some bytes.
pub(crate) fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Copies all that can be read, and gives its digest. Holds no more than a piece of it.
pub(crate) fn of_copied(mut source: impl Read, mut copy: impl Write) -> io::Result<String> {
    let (mut digest, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let read = source.read(&mut piece)?;
        match piece.get(..read) {
            Some(bytes) if read > 0 => {
                digest.update(bytes);
                copy.write_all(bytes)?;
            }
            _ => return Ok(hex(&digest.finalize())),
        }
    }
}

/// A digest of what has no bytes of its own, but can be hashed.
pub(crate) fn of_hash(value: &impl Hash) -> String {
    let mut hasher = Sha(Sha256::new());
    value.hash(&mut hasher);
    hex(&hasher.0.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// None where it is no hexadecimal.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| {
        let pair = text.get(at..at + 2)?;
        let digits = pair.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u8::from_str_radix(pair, 16).ok())?
    };
    (0..text.len()).step_by(2).map(pair).collect()
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
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::of(b"abc"), abc);
        let mut copy = Vec::new();
        assert_eq!(super::of_copied(&b"abc"[..], &mut copy).unwrap(), abc);
        assert_eq!(copy, b"abc");
        assert_ne!(super::of_hash(&1_u32), super::of_hash(&2_u32));
    }

    #[test]
    fn hexadecimal_there_and_back() {
        assert_eq!(super::from_hex(&super::hex(&[0, 10, 255])), Some(vec![0, 10, 255]));
        for wrong in ["0", "0g", "ää", "+1"] {
            assert_eq!(super::from_hex(wrong), None, "{wrong}");
        }
    }
}
