//! A core for the server and the others for what is measured: where both run on the same ones, what the one takes is
//! missing to the other, which is so on no machine but this one.

use std::fs;

use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread, and all that it starts while this lives, runs on every core but the first.
pub(crate) struct Cores {
    whole: CpuSet,
    server: CpuSet,
}

impl Cores {
    /// None on a machine with one core, or one that does not let itself be told: then all share all.
    pub(crate) fn part() -> Option<Self> {
        let whole = sched_getaffinity(None).ok()?;
        let first = (0..CpuSet::MAX_CPU).find(|core| whole.is_set(*core))?;
        let (mut own, mut server) = (whole, CpuSet::new());
        own.unset(first);
        server.set(first);
        if own.count() == 0 || sched_setaffinity(None, &own).is_err() {
            return None;
        }
        Some(Self { whole, server })
    }

    /// Moves the servers that were started meanwhile, with all their threads, to the first core.
    pub(crate) fn move_servers(&self) {
        let own = getpid().as_raw_nonzero().get();
        for process in numbers("/proc").filter(|process| descends(*process, own)) {
            for thread in numbers(&format!("/proc/{process}/task")).filter_map(Pid::from_raw) {
                // One that has ended meanwhile needs no core.
                let _ = sched_setaffinity(Some(thread), &self.server);
            }
        }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.whole);
    }
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process was started by another, or by one that was.
fn descends(process: i32, from: i32) -> bool {
    std::iter::successors(parent(process), |above| parent(*above)).any(|above| above == from)
}

fn parent(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: the state, then the parent.
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok().filter(|above| *above > 0)
}
