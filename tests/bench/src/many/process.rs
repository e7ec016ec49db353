//! What this process has of the machine.

use std::fs;

use anyhow::{Context, Result};

#[derive(Debug, Clone, Copy)]
pub(super) struct Census {
    /// Memory that is backed by no file, in KiB.
    anonymous: u64,
    pub(super) files: usize,
    pub(super) maps: usize,
}

impl Census {
    pub(super) fn now() -> Result<Self> {
        let rollup = fs::read_to_string("/proc/self/smaps_rollup").context("smaps_rollup")?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let figure = line.and_then(|rest| rest.trim().strip_suffix("kB")).context("no figure")?;
        Ok(Self {
            anonymous: figure.trim().parse()?,
            files: fs::read_dir("/proc/self/fd")?.count(),
            maps: fs::read_to_string("/proc/self/maps")?.lines().count(),
        })
    }

    /// Anonymous memory above that of another time, in KiB.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(super) fn anonymous_over(&self, before: &Self) -> f64 {
        self.anonymous as f64 - before.anonymous as f64
    }
}
