//! What is no TOML.

use std::ops::Range;

use pumphouse_contract::Severity;
use toml_span::value::{Table, Value};
use toml_span::{Error, ErrorKind};

use crate::diagnostic::Code;
use crate::report::{Note, Report, join, position};

/// A key that no one writes, to stand in for one that stands twice.
const STAND_IN: &str = "key-that-stands-twice";

/// Reports why a text is no TOML. The parser stops at the first error, so it is the only one.
pub(crate) fn report(error: &Error, text: &str, report: &Report<'_>) {
    let span: Range<usize> = error.span.into();
    let (key, note) = match &error.kind {
        ErrorKind::DuplicateKey { key, first } => {
            let path = path_of(text, &span).unwrap_or_else(|| join("", key));
            (path, twice("key", first.start, text))
        }
        ErrorKind::DuplicateTable { name, first } => {
            let path = header(text, &span).unwrap_or_else(|| join("", name));
            (path, twice("table", first.start, text))
        }
        _ => (String::new(), Note::new(Code::Syntax, format!("this is no TOML: {error}"))),
    };
    report.add(Severity::Error, &key, span, note);
}

fn twice(what: &str, first: usize, text: &str) -> Note {
    let (line, _) = position(text, first);
    Note::new(Code::DuplicateKey, format!("this {what} stands twice, first in line {line}"))
}

/// The full path of the key at this place, had by giving it another name and reading again.
fn path_of(text: &str, span: &Range<usize>) -> Option<String> {
    let changed = format!("{}{STAND_IN}{}", text.get(..span.start)?, text.get(span.end..)?);
    let document = toml_span::parse(&changed).ok()?;
    let around = find(document.as_table()?, span.start, "")?;
    Some(join(&around, text.get(span.clone())?.trim_matches(['"', '\''])))
}

/// The path of the table that has a key at this place.
fn find(table: &Table<'_>, start: usize, path: &str) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        if key.span.start == start {
            return Some(path.to_owned());
        }
        find_in(value, start, &join(path, &key.name))
    })
}

fn find_in(value: &Value<'_>, start: usize, path: &str) -> Option<String> {
    match value.as_array() {
        Some(items) => items.iter().find_map(|item| find_in(item, start, path)),
        None => find(value.as_table()?, start, path),
    }
}

/// The name in the header of a table.
fn header(text: &str, span: &Range<usize>) -> Option<String> {
    let line = text.get(span.start..)?.lines().next()?;
    let name = line.trim_start_matches('[').split(']').next()?;
    Some(name.trim().to_owned())
}
