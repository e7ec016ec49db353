//! What a host logged, line by line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// The log of one process.
#[derive(Debug, Clone)]
pub struct Log(PathBuf);

/// One line: a JSON object, or what is none, as text.
#[derive(Debug, Clone)]
pub struct Line {
    /// As it stands in the file.
    pub text: String,
    value: Value,
}

/// What the conformance guest said when it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The message.
    pub id: String,
    /// The count that it saw.
    pub count: u32,
    /// When.
    pub at: Timestamp,
}

impl Log {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// As it stands in the file. What is no text is shown as such.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.0).unwrap_or_default()).into_owned()
    }

    /// The lines that were ended.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let text = self.text();
        let ended = text.rfind('\n').map_or("", |end| &text[..end]);
        ended.split('\n').filter(|line| !line.is_empty()).map(Line::of).collect()
    }

    /// The lines with this constant message.
    #[must_use]
    pub fn saying(&self, message: &str) -> Vec<Line> {
        self.lines().into_iter().filter(|line| line.field("message") == message).collect()
    }

    /// The calls that the conformance guest told of.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lines().iter().filter_map(Line::call).collect()
    }

    /// The messages of which a guest logged exactly this text, in that order.
    #[must_use]
    pub fn guest_said(&self, text: &str) -> Vec<String> {
        let lines = self.lines().into_iter();
        let said = lines.filter(|line| line.is_guests() && line.field("text") == text);
        said.map(|line| line.field("message_id").to_owned()).collect()
    }
}

impl Line {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned(), value: serde_json::from_str(text).unwrap_or_default() }
    }

    /// Whether it is a JSON object.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.value.is_object()
    }

    /// A field that is text; empty where it is not there.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.value[name].as_str().unwrap_or_default()
    }

    /// A field that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value[name].as_u64()
    }

    /// When it was logged.
    ///
    /// # Panics
    /// When the line has no time.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.field("timestamp").parse().expect("a timestamp")
    }

    /// Whether a guest logged it.
    #[must_use]
    pub fn is_guests(&self) -> bool {
        self.field("target") == "pumphouse::guest"
    }

    fn call(&self) -> Option<Call> {
        if !self.is_guests() || self.field("context") != "call" {
            return None;
        }
        let mut words = self.field("text").split(' ');
        let id = words.next()?.strip_prefix("id=")?.to_owned();
        let count = words.next()?.strip_prefix("count=")?.parse().ok()?;
        Some(Call { id, count, at: self.at() })
    }
}

impl Call {
    /// The time from another call to this one; nothing where that came later.
    #[must_use]
    pub fn since(&self, other: &Self) -> Duration {
        Duration::try_from(self.at.duration_since(other.at)).unwrap_or_default()
    }
}
