//! Lines for the operator's log.
//!
//! Each line stands beside the message's id and the handler's name and version. A component that calls one
//! of these functions needs `grants.logging = true`. A handler that logs past its budget of bytes ends with
//! a fault. In native tests the lines go to the standard error stream.

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The finest detail; off unless someone is looking for a fault.
    Trace,
    /// For whoever works on the handler.
    Debug,
    /// What is worth knowing in daily operation.
    Info,
    /// Something is odd, and the work goes on.
    Warn,
    /// Something failed.
    Error,
    /// The handler cannot go on.
    Critical,
}

/// Adds a line at [`Level::Trace`].
pub fn trace(text: impl AsRef<str>) {
    line(Level::Trace, "", text.as_ref());
}

/// Adds a line at [`Level::Debug`].
pub fn debug(text: impl AsRef<str>) {
    line(Level::Debug, "", text.as_ref());
}

/// Adds a line at [`Level::Info`].
pub fn info(text: impl AsRef<str>) {
    line(Level::Info, "", text.as_ref());
}

/// Adds a line at [`Level::Warn`].
pub fn warn(text: impl AsRef<str>) {
    line(Level::Warn, "", text.as_ref());
}

/// Adds a line at [`Level::Error`].
pub fn error(text: impl AsRef<str>) {
    line(Level::Error, "", text.as_ref());
}

/// Adds a line at [`Level::Critical`].
pub fn critical(text: impl AsRef<str>) {
    line(Level::Critical, "", text.as_ref());
}

/// Adds one line. `context` says which part of the handler speaks; an empty one is fine.
#[cfg(target_family = "wasm")]
pub fn line(level: Level, context: &str, text: &str) {
    crate::wit::log(level, context, text);
}

/// Adds one line. `context` says which part of the handler speaks; an empty one is fine.
#[cfg(not(target_family = "wasm"))]
pub fn line(level: Level, context: &str, text: &str) {
    eprintln!("{level:?} {context} {text}");
}
