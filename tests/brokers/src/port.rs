//! Free ports on loopback that stay ours while a server is down.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::Error;

/// Below the range that the system gives to outgoing connections: a client that keeps trying
/// a dead port within that range may end up connected to itself.
const FIRST: u16 = 17_000;
const COUNT: u16 = 15_000;

/// A port that no other test process takes while this is held.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _locks: Vec<File>,
}

impl Port {
    /// Reserves a port that nothing listens on.
    pub(crate) fn reserve() -> Result<Self, Error> {
        Self::find(&[0])
    }

    /// Reserves a port, and with it the one so far below.
    pub(crate) fn reserve_with(below: u16) -> Result<Self, Error> {
        Self::find(&[0, below])
    }

    fn find(below: &[u16]) -> Result<Self, Error> {
        let user = rustix::process::getuid().as_raw();
        let folder = std::env::temp_dir().join(format!("pumphouse-test-ports-{user}"));
        std::fs::create_dir_all(&folder).map_err(Error::path("creating", &folder))?;
        let start = RandomState::new().build_hasher().finish() % u64::from(COUNT);
        let start = u16::try_from(start).unwrap_or_default();
        (0..COUNT)
            .map(|step| FIRST + (start + step) % COUNT)
            .find_map(|number| Self::claim(number, below, &folder))
            .ok_or_else(|| Error::Io {
                doing: format!("finding a free port in {FIRST}..{}", FIRST + COUNT),
                source: std::io::ErrorKind::AddrInUse.into(),
            })
    }

    fn claim(number: u16, below: &[u16], folder: &Path) -> Option<Self> {
        let locks = below.iter().map(|below| lock(number.checked_sub(*below)?, folder));
        Some(Self { number, _locks: locks.collect::<Option<_>>()? })
    }
}

fn lock(number: u16, folder: &Path) -> Option<File> {
    let file = File::create(folder.join(number.to_string())).ok()?;
    file.try_lock().ok()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
    Some(file)
}
