//! Fields as text that can't forge a line, nor another field.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{MakeVisitor, VisitFmt, VisitOutput};
use tracing_subscriber::fmt::format::Writer;

/// Formats fields as `name=value`, the message without its name. The library's own formatter lets a value that is
/// shown by `Display` hold line ends and control sequences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields;

pub(crate) struct Visitor<'a> {
    writer: Writer<'a>,
    first: bool,
    result: fmt::Result,
}

impl<'a> MakeVisitor<Writer<'a>> for Fields {
    type Visitor = Visitor<'a>;

    fn make_visitor(&self, writer: Writer<'a>) -> Visitor<'a> {
        Visitor { writer, first: true, result: Ok(()) }
    }
}

impl Visitor<'_> {
    fn write(&mut self, field: &Field, value: &str) {
        let name = field.name();
        // What a record of the `log` crate says of itself is shown as its target and level.
        if name.starts_with("log.") || self.result.is_err() {
            return;
        }
        let separator = if std::mem::take(&mut self.first) { "" } else { " " };
        self.result = match name {
            "message" => write!(self.writer, "{separator}{}", Escaped(value)),
            _ if is_plain(value) => write!(self.writer, "{separator}{name}={value}"),
            _ => write!(self.writer, "{separator}{name}=\"{}\"", Quoted(value)),
        };
    }
}

impl Visit for Visitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.write(field, &with_causes(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, &format!("{value:?}"));
    }
}

impl VisitOutput<fmt::Result> for Visitor<'_> {
    fn finish(self) -> fmt::Result {
        self.result
    }
}

impl VisitFmt for Visitor<'_> {
    fn writer(&mut self) -> &mut dyn Write {
        &mut self.writer
    }
}

/// The error and what caused it, in one line.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Whether the value is one word to a reader, and to a program.
fn is_plain(value: &str) -> bool {
    let plain =
        |c: char| !is_unsafe(c) && !c.is_whitespace() && !matches!(c, '"' | '=' | '{' | '}');
    !value.is_empty() && value.chars().all(plain)
}

/// What ends a line, commands a terminal, or makes text seem to stand elsewhere than it does.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Text on one line.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| write_char(f, c))
    }
}

/// Text on one line, within quotation marks.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            _ => write_char(f, c),
        })
    }
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        c if is_unsafe(c) => write!(f, "{}", c.escape_unicode()),
        c => f.write_char(c),
    }
}
