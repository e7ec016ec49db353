//! The compile worker: what runs in the process that compiles one component.
//!
//! It limits itself before it reads: the component is a stranger's, and a compiler is a large program. It gets the
//! component on standard input and answers on standard output; [`frame`](crate::frame) says how.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setpriority_process,
    setrlimit, setsid,
};

use crate::engine;
use crate::frame::{self, Answer};

/// A tenth of what others have on a full processor. With the lowest of all, a start on a machine that is busy with
/// something else would wait for minutes.
pub(crate) const LOW_PRIORITY: i32 = 10;

/// Standard input, output and error, and what the engine looks up in `/proc` and `/sys`.
const OPEN_FILES: u64 = 16;

/// The exit status of a worker that was started wrongly, or whose host is gone.
const UNUSABLE: u8 = 64;

/// What the host says on the worker's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orders {
    /// The host's process.
    pub(crate) host: i32,
    /// Bytes of address space.
    pub(crate) memory: u64,
    /// Seconds on a processor.
    pub(crate) seconds: u64,
    /// The largest component, in bytes.
    pub(crate) component: u64,
    /// Whether it gives way to everything else.
    pub(crate) gives_way: bool,
}

impl Orders {
    pub(crate) fn arguments(self) -> [String; 5] {
        let Self { host, memory, seconds, component, gives_way } = self;
        let numbers = [memory, seconds, component, u64::from(gives_way)].map(|one| one.to_string());
        let [memory, seconds, component, gives_way] = numbers;
        [host.to_string(), memory, seconds, component, gives_way]
    }

    fn parse(arguments: &[OsString]) -> Option<Self> {
        let [host, memory, seconds, component, gives_way] = arguments else { return None };
        Some(Self {
            host: host.to_str()?.parse().ok()?,
            memory: memory.to_str()?.parse().ok()?,
            seconds: seconds.to_str()?.parse().ok()?,
            component: component.to_str()?.parse().ok()?,
            gives_way: gives_way.to_str()? == "1",
        })
    }
}

/// Compiles one component and ends: what a process does that [`CompileWorker`](crate::CompileWorker) started. The
/// arguments are those that the sandbox added.
///
/// The process must have one thread and be of no other use: it gives up its priority, its session and most of its
/// limits.
#[must_use]
pub fn compile_worker(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let done = Orders::parse(&arguments)
        .ok_or_else(|| io::Error::other("only a host starts this, with its own arguments"))
        .and_then(|orders| confine(orders).and_then(|()| serve(orders)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The host reads it; who else started this does, too.
            let _ = writeln!(io::stderr(), "compile worker: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

fn confine(orders: Orders) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The host may have died before that was set.
    if getppid() != Pid::from_raw(orders.host) {
        return Err(io::Error::other("the host that started this is gone"));
    }
    // A session of its own: no terminal's signals. It has one already where it leads a group.
    let _ = setsid();
    if orders.gives_way {
        setpriority_process(None, LOW_PRIORITY)?;
        // Where each session is scheduled as one, a priority counts only within it; this is the session's own.
        let _ = fs::write("/proc/self/autogroup", LOW_PRIORITY.to_string());
    }
    limit(Resource::As, orders.memory, orders.memory)?;
    // The first is a signal of its own, so that the host sees which limit it was.
    limit(Resource::Cpu, orders.seconds, orders.seconds.saturating_add(1))?;
    limit(Resource::Nofile, OPEN_FILES, OPEN_FILES)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Core, 0, 0)
}

fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    // What the host itself may not have can't be had here.
    let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limits = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(setrlimit(resource, limits)?)
}

fn serve(orders: Orders) -> io::Result<()> {
    let component = frame::read_component(io::stdin().lock(), orders.component)?;
    let compiled = engine::compiling()
        .and_then(|engine| engine.precompile_component(&component))
        .map_err(|error| format!("{error:#}"));
    let answer = match &compiled {
        Ok(artifact) => Answer::Artifact(artifact),
        Err(text) => Answer::Refused(text),
    };
    frame::write_answer(io::stdout().lock(), answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_as_they_were_given() {
        let orders =
            Orders { host: 7, memory: 1 << 32, seconds: 120, component: 1 << 27, gives_way: true };
        let arguments = orders.arguments().map(OsString::from);
        assert_eq!(Orders::parse(&arguments), Some(orders));
        for wrong in [&["7"][..], &["a", "1", "1", "1", "1"], &["7", "-1", "1", "1", "1"]] {
            let arguments: Vec<OsString> = wrong.iter().map(OsString::from).collect();
            assert_eq!(Orders::parse(&arguments), None, "{wrong:?}");
        }
    }
}
