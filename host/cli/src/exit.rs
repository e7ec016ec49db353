//! How the process ends, and what it says on standard error before it does.

use std::io::Write;
use std::process::ExitCode;

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

/// Prints to standard output; a reader that is gone is no reason to fail.
pub(crate) fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints to standard error.
pub(crate) fn warn(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error with its causes.
pub(crate) fn complain(error: &anyhow::Error) {
    warn(format!("error: {error:#}"));
}
