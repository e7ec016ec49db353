//! From a file or a text to a configuration, or to everything that is wrong with it.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use pumphouse_contract::Severity;
use pumphouse_contract::ports::{Capabilities, Counter};

use crate::assemble::assemble;
use crate::diagnostic::{Code, Diagnostics};
use crate::report::{Note, Report};
use crate::review::{self, Review};
use crate::section::Section;
use crate::syntax;
use crate::types::Config;
use crate::walk::Walk;

/// The longest configuration that is read, in bytes.
const LONGEST_FILE_BYTES: u64 = 16 << 20;

/// What one transport of this build can do, as far as a configuration may ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportFacts {
    /// Its key in the configuration: `embedded`, `sqs`, `pubsub`, `rocketmq`.
    pub key: &'static str,
    /// The longest lease.
    pub longest_lease: Duration,
    /// The longest delay of a release.
    pub longest_delay: Duration,
    /// Whether that is counted from the receive, so that a handler's time is taken from it.
    pub delay_counts_from_receive: bool,
    /// How long a settlement waits for others of its batch.
    pub settle_linger: Duration,
    /// How good the counter is.
    pub counter: Counter,
    /// Whether the broker has a dead-letter policy of its own.
    pub native_policy: bool,
}

impl TransportFacts {
    /// From what a source of the transport claims.
    #[must_use]
    pub fn new(key: &'static str, capabilities: &Capabilities, native_policy: bool) -> Self {
        Self {
            key,
            longest_lease: capabilities.longest_lease,
            longest_delay: capabilities.longest_delay,
            delay_counts_from_receive: capabilities.delay_counts_from_receive,
            settle_linger: capabilities.settle_linger,
            counter: capabilities.counter,
            native_policy,
        }
    }
}

/// The transports of this build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    transports: Vec<TransportFacts>,
}

impl Build {
    /// A build with these transports.
    #[must_use]
    pub fn new(transports: Vec<TransportFacts>) -> Self {
        Self { transports }
    }

    /// What the transport of that key can do; none where this build does not have it.
    #[must_use]
    pub fn transport(&self, key: &str) -> Option<&TransportFacts> {
        self.transports.iter().find(|one| one.key == key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.transport(key).is_some()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.transports.iter().map(|one| one.key).collect()
    }
}

/// A sound configuration and what its author hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The warnings.
    pub warnings: Diagnostics,
}

/// Reads a file of at most 16 MiB. Blocks on the file system: not for the async runtime.
///
/// # Errors
/// Everything that is wrong with it, the component files that are not there included, and the warnings too.
pub fn load(path: &Path, build: &Build) -> Result<Loaded, Diagnostics> {
    let text = read_file(path).map_err(|problem| unreadable(path, problem))?;
    read(&text, path, build, true)
}

/// Reads a text as if it stood at this path, which says where relative paths begin. Looks at no other file.
///
/// # Errors
/// Everything that is wrong with it, and the warnings too.
pub fn parse(text: &str, path: &Path, build: &Build) -> Result<Loaded, Diagnostics> {
    read(text, path, build, false)
}

fn read(text: &str, path: &Path, build: &Build, files: bool) -> Result<Loaded, Diagnostics> {
    let report = Report::new(path, text);
    let document = match toml_span::parse(text) {
        Ok(document) => document,
        Err(error) => {
            syntax::report(&error, text, &report);
            return Err(report.finish());
        }
    };
    let Some(root) = document.as_table() else { return Err(report.finish()) };
    Walk { report: &report, build }.all(root);
    let config = assemble(&Section::root(&report, root), directory(path));
    let review = Review { config: &config, report: &report, build };
    review.all();
    if files {
        review::files(&review);
    }
    let found = report.finish();
    if found.errors() > 0 { Err(found) } else { Ok(Loaded { config, warnings: found }) }
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new(""))
}

/// Why a file could not be read, and where in it.
struct Problem {
    message: String,
    text: String,
    at: usize,
}

fn read_file(path: &Path) -> Result<String, Problem> {
    let shown = path.display();
    let failed =
        |error: std::io::Error| plain(format!("the configuration {shown} can't be read: {error}"));
    // Looked at before it is opened: opening a pipe waits for its other end, for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(plain("the configuration can't be read: it is not a file".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST_FILE_BYTES {
        return Err(plain(format!("the configuration {shown} is longer than 16 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| Problem {
        message: "the configuration is not UTF-8 from here on".to_owned(),
        at: error.utf8_error().valid_up_to(),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn plain(message: String) -> Problem {
    Problem { message, text: String::new(), at: 0 }
}

fn unreadable(path: &Path, problem: Problem) -> Diagnostics {
    let report = Report::new(path, &problem.text);
    let note = Note::new(Code::Unreadable, problem.message);
    report.add(Severity::Error, "", problem.at..problem.at, note);
    report.finish()
}
