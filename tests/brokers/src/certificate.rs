use std::io;
use std::path::Path;

use crate::Error;

/// A certificate for servers on loopback, which is its own authority, in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The path of the certificate, as PEM.
    pub certificate: String,
    /// The path of its key, as PEM.
    pub key: String,
}

impl Certificate {
    /// Makes one, as `<name>.pem` and `<name>.key` in this folder.
    ///
    /// # Errors
    /// When no key can be made, or a file can't be written.
    pub fn make(folder: &Path, name: &str) -> Result<Self, Error> {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let made = made.map_err(|error| Error::Io {
            doing: format!("making the certificate {name} failed"),
            source: io::Error::other(error),
        })?;
        let write = |end: &str, text: String| {
            let path = folder.join(format!("{name}.{end}"));
            std::fs::write(&path, text).map_err(Error::path("writing", &path))?;
            Ok(path.display().to_string())
        };
        Ok(Self {
            certificate: write("pem", made.cert.pem())?,
            key: write("key", made.signing_key.serialize_pem())?,
        })
    }
}
