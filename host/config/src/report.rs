//! Where findings are gathered while a configuration is read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pumphouse_contract::Severity;

use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// Where a key and its value stand, in bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spot {
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// Which of the two a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Key,
    Value,
}

/// A finding before it has its place.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) allowed: Option<String>,
    pub(crate) nearest: Option<String>,
}

impl Note {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), allowed: None, nearest: None }
    }

    pub(crate) fn allowed(self, allowed: impl Into<String>) -> Self {
        Self { allowed: Some(allowed.into()), ..self }
    }

    pub(crate) fn nearest(self, nearest: Option<impl Into<String>>) -> Self {
        Self { nearest: nearest.map(Into::into), ..self }
    }
}

/// The findings so far. Adding one needs no exclusive access, so that every reader can.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    file: &'a Path,
    text: &'a str,
    spots: RefCell<BTreeMap<String, Spot>>,
    found: RefCell<Vec<Diagnostic>>,
    blots: RefCell<Vec<Range<usize>>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            file,
            text,
            spots: RefCell::default(),
            found: RefCell::default(),
            blots: RefCell::default(),
        }
    }

    /// Remembers where a key stands.
    pub(crate) fn place(&self, key: String, spot: Spot) {
        self.spots.borrow_mut().insert(key, spot);
    }

    pub(crate) fn error(&self, key: &str, at: At, note: Note) {
        let span = self.span(key, at);
        self.add(Severity::Error, key, span, note);
    }

    pub(crate) fn warn(&self, key: &str, at: At, note: Note) {
        let span = self.span(key, at);
        self.add(Severity::Warning, key, span, note);
    }

    pub(crate) fn add(&self, severity: Severity, key: &str, span: Range<usize>, note: Note) {
        let Note { code, message, allowed, nearest } = note;
        let (line, column) = position(self.text, span.start);
        let file = self.file.to_owned();
        let key = key.to_owned();
        self.found.borrow_mut().push(Diagnostic {
            severity,
            code,
            file,
            line,
            column,
            key,
            message,
            allowed,
            nearest,
            span,
        });
    }

    /// Blots out a value in every snippet: it may be a secret.
    pub(crate) fn blot(&self, key: &str) {
        self.blots.borrow_mut().push(self.span(key, At::Value));
    }

    /// Whether the file has this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.spots.borrow().contains_key(key)
    }

    /// Whether there is an error at this key, below it, or at a misspelling of it.
    pub(crate) fn is_spoilt(&self, key: &str) -> bool {
        self.found.borrow().iter().any(|one| {
            let meant = one.nearest.as_deref().map(|name| sibling(&one.key, name));
            one.severity == Severity::Error
                && (is_within(&one.key, key) || meant.is_some_and(|meant| is_within(&meant, key)))
        })
    }

    pub(crate) fn finish(self) -> Diagnostics {
        let mut text = self.text.to_owned();
        for blot in self.blots.into_inner() {
            text = blotted(&text, blot);
        }
        Diagnostics::new(self.found.into_inner(), Arc::from(text))
    }

    /// The place of a key that is absent is that of the nearest table around it.
    fn span(&self, key: &str, at: At) -> Range<usize> {
        let spots = self.spots.borrow();
        let mut around = key;
        loop {
            if let Some(spot) = spots.get(around) {
                let exact = around.len() == key.len();
                return match at {
                    At::Value if exact => spot.value.clone(),
                    At::Key | At::Value => spot.key.clone(),
                };
            }
            match around.rsplit_once('.') {
                Some((outer, _)) => around = outer,
                None => return 0..0,
            }
        }
    }
}

fn is_within(key: &str, outer: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn sibling(key: &str, name: &str) -> String {
    match key.rsplit_once('.') {
        Some((outer, _)) => format!("{outer}.{name}"),
        None => name.to_owned(),
    }
}

/// Every character of the range but line breaks becomes `*`, byte for byte so that no place moves.
fn blotted(text: &str, range: Range<usize>) -> String {
    let blot = |(at, c): (usize, char)| {
        let hidden = range.contains(&at) && c != '\n' && c != '\r';
        if hidden { "*".repeat(c.len_utf8()) } else { c.to_string() }
    };
    text.char_indices().map(blot).collect()
}

/// Line and column of a byte, both from 1.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

/// A key's path with one more name, quoted where TOML wants it quoted.
pub(crate) fn join(path: &str, name: &str) -> String {
    let bare =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let name = if bare { name.to_owned() } else { format!("{name:?}") };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_characters() {
        let text = "a = 1\nä = \"ö\" # x\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 6), (2, 1));
        assert_eq!(position(text, text.find('#').expect("a comment")), (2, 9));
        assert_eq!(position(text, 999), (3, 1));
    }

    #[test]
    fn what_is_blotted_out_moves_nothing() {
        assert_eq!(blotted("k = \"sé\"\nx", 4..9), "k = *****\nx");
    }

    #[test]
    fn an_odd_name_is_quoted() {
        assert_eq!(join("a", "b-c_1"), "a.b-c_1");
        assert_eq!(join("a", "b.c"), "a.\"b.c\"");
        assert_eq!(join("", "x"), "x");
    }
}
