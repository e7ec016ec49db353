//! How the process ends, and what it says on standard error before it does.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The ways to end. The numbers are documented in `docs/operating.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; for `run`, a clean drain.
    Done,
    /// It could not start, or could not drain in time.
    Failed,
    /// The command line.
    Usage,
    /// The configuration.
    Configuration,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 64,
            Exit::Configuration => 78,
        })
    }
}

/// Whether something that was to be printed is not where it should be.
static UNSAID: AtomicBool = AtomicBool::new(false);

/// Prints to standard output; a reader that is gone is no reason to fail, a full disk is.
pub(crate) fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{text}").and_then(|()| out.flush());
    if said.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
        UNSAID.store(true, Ordering::Relaxed);
    }
}

/// Whether everything that was said could be written.
pub(crate) fn all_said() -> bool {
    !UNSAID.load(Ordering::Relaxed)
}

/// Prints to standard error.
pub(crate) fn warn(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error with its causes.
pub(crate) fn complain(error: &anyhow::Error) {
    warn(format!("error: {error:#}"));
}
