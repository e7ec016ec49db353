//! What the operating system has to give for so many handlers in memory.

use std::fmt;
use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Its file stays open, since the first pages of a guest's memory are mapped from it.
const FILES_EACH: u64 = 1;
/// Its code, what is read-only, and what is neither.
const MAPS_EACH: u64 = 4;
/// For connections, folders, the compiler's pipes and what is loaded while others leave.
const FILES_SPARE: u64 = 256;
const MAPS_SPARE: u64 = 4_096;

/// A limit of the operating system that is too low.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// What there is too little of.
    pub what: &'static str,
    /// What the limit is.
    pub limit: u64,
    /// What it must be.
    pub needed: u64,
    /// How to raise it.
    pub remedy: String,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, needed, remedy } = self;
        write!(
            f,
            "the limit on {what} is {limit}, and the handlers in memory may need {needed}: {remedy}, or lower \
             `host.resident_handlers`"
        )
    }
}

/// Raises the soft limit on open files to the hard one, which every process may do. What it is then; none where there
/// is no limit.
pub fn raise_open_files() -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if raised.is_ok() { maximum } else { getrlimit(Resource::Nofile).current }
}

/// Which limits of the operating system are too low for so many handlers in memory, beside what this process has open
/// and mapped already: to be asked after the sandbox was made. Empty where they suffice.
#[must_use]
pub fn shortages(resident: usize) -> Vec<Shortage> {
    let resident = resident as u64;
    let files = FILES_EACH.saturating_mul(resident) + FILES_SPARE + open_files();
    let maps = MAPS_EACH.saturating_mul(resident) + MAPS_SPARE + maps();
    let shortage = |what, limit: Option<u64>, needed: u64, remedy: String| {
        let limit = limit.filter(|limit| *limit < needed)?;
        Some(Shortage { what, limit, needed, remedy })
    };
    let of_files = shortage(
        "open files",
        getrlimit(Resource::Nofile).current,
        files,
        format!("`ulimit -Hn {files}`, or `LimitNOFILE={files}` in the service's unit"),
    );
    let of_maps =
        shortage("memory maps", map_limit(), maps, format!("`sysctl vm.max_map_count={maps}`"));
    of_files.into_iter().chain(of_maps).collect()
}

/// None where the system does not say: it has no such limit then, or is not Linux.
fn map_limit() -> Option<u64> {
    fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

fn maps() -> u64 {
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    maps.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_low_is_said_with_what_to_raise_it_to() {
        assert_eq!(shortages(0), []);
        let needed = 4 * u64::from(u32::MAX);
        let short = shortages(u32::MAX as usize);
        let maps = short.iter().find(|one| one.what == "memory maps").unwrap();
        assert!(maps.needed > needed && maps.limit < needed);
        let text = maps.to_string();
        for part in [&format!("vm.max_map_count={}", maps.needed), "`host.resident_handlers`"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_open_files();
        let limits = getrlimit(Resource::Nofile);
        assert_eq!((limits.current, limits.maximum), (raised, raised));
    }
}
