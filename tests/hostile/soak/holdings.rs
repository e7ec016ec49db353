//! What a process holds: memory and open files.

use std::fmt;

/// At one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holdings {
    /// Resident memory, in bytes.
    pub(crate) memory: u64,
    /// Open descriptors.
    pub(crate) files: usize,
}

impl Holdings {
    pub(crate) fn of(process: u32) -> Self {
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
        Self { memory: pumphouse_e2e::resident(process), files }
    }

    /// The least memory of some moments, which a call in progress has least part in, and the fewest files.
    pub(crate) fn least(samples: &[Self]) -> Self {
        Self {
            memory: samples.iter().map(|one| one.memory).min().unwrap_or(0),
            files: samples.iter().map(|one| one.files).min().unwrap_or(0),
        }
    }
}

impl fmt::Display for Holdings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB, {} descriptors", self.memory >> 20, self.files)
    }
}
