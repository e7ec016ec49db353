//! A free port on loopback that stays ours while no host listens on it.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

/// Below the range that the system gives to outgoing connections, so that none of them takes it meanwhile. The
/// servers for tests take theirs in the same way, from the same folder.
const PORTS: std::ops::Range<u16> = 17_000..32_000;

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _lock: File,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        let user = rustix::process::getuid().as_raw();
        let folder = std::env::temp_dir().join(format!("pumphouse-test-ports-{user}"));
        std::fs::create_dir_all(&folder).expect("a folder for locks");
        let start = rand::random_range(PORTS);
        let numbers = (start..PORTS.end).chain(PORTS.start..start);
        let claimed = numbers.into_iter().find_map(|n| Self::claim(n, folder.join(n.to_string())));
        claimed.expect("a free port")
    }

    fn claim(number: u16, path: PathBuf) -> Option<Self> {
        let lock = File::create(path).ok()?;
        lock.try_lock().ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _lock: lock })
    }
}
