use std::time::{SystemTime, UNIX_EPOCH};

use pumphouse_contract::{Clock, Mono, Timestamp};
use tokio::time::Instant;

/// The machine's clocks. The monotonic one is Tokio's, so that tests can pause it.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn mono(&self) -> Mono {
        Mono(self.origin.elapsed())
    }
}
