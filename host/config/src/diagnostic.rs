//! What is found, and how it is shown.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};
use pumphouse_contract::{Rule, Severity};

/// How wide a rendered diagnostic is, in columns.
const WIDTH: usize = 100;

/// What kind of thing is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The file can't be read, or is no text.
    Unreadable,
    /// It is no TOML.
    Syntax,
    /// A key or a table stands twice.
    DuplicateKey,
    /// There is no such key.
    UnknownKey,
    /// A key takes another type.
    WrongType,
    /// A key takes another value.
    WrongValue,
    /// A key must be there.
    Missing,
    /// A name refers to nothing.
    UnknownName,
    /// A file is not there.
    MissingFile,
    /// This build, or this transport, does not have it.
    Unsupported,
    /// Two keys exclude each other.
    Contradiction,
    /// A secret stands in the file.
    LiteralSecret,
    /// What is allowed but seldom meant.
    Exposed,
    /// A rule of the delivery contract about semantics: the source can't give what is declared (S-1).
    S1,
    /// A rule of the delivery contract about delays: the broker can't give one (S-2).
    S2,
    /// The lease that the deadline needs is longer than the broker gives.
    Lease,
    /// A rule of the delivery contract, F-1 to F-7.
    Rule(Rule),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "unreadable",
            Self::Syntax => "syntax",
            Self::DuplicateKey => "duplicate-key",
            Self::UnknownKey => "unknown-key",
            Self::WrongType => "wrong-type",
            Self::WrongValue => "wrong-value",
            Self::Missing => "missing",
            Self::UnknownName => "unknown-name",
            Self::MissingFile => "missing-file",
            Self::Unsupported => "unsupported",
            Self::Contradiction => "contradiction",
            Self::LiteralSecret => "literal-secret",
            Self::Exposed => "exposed",
            Self::S1 => "S-1",
            Self::S2 => "S-2",
            Self::Lease => "lease",
            Self::Rule(rule) => return rule.fmt(f),
        })
    }
}

/// One thing found, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it blocks the start.
    pub severity: Severity,
    /// What kind of thing it is.
    pub code: Code,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The full path of the key: `subscriptions.orders.retry.backoff`; empty for the file as a whole.
    pub key: String,
    /// What is wrong. No value of a secret is ever in it.
    pub message: String,
    /// What is allowed there.
    pub allowed: Option<String>,
    /// The nearest known name.
    pub nearest: Option<String>,
    /// The place in bytes from the beginning of the file.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// Each part by its name, for programs; what is not there is left out.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("severity", self.severity.to_string()),
            ("code", self.code.to_string()),
            ("file", self.file.display().to_string()),
            ("line", self.line.to_string()),
            ("column", self.column.to_string()),
            ("key", self.key.clone()),
            ("message", self.message.clone()),
        ];
        fields.extend(self.allowed.clone().map(|allowed| ("allowed", allowed)));
        fields.extend(self.nearest.clone().map(|nearest| ("nearest", nearest)));
        fields
    }

    fn help(&self) -> Option<String> {
        let nearest = self.nearest.as_ref().map(|name| format!("did you mean `{name}`?"));
        let allowed = self.allowed.as_ref().map(|allowed| format!("allowed: {allowed}"));
        let parts: Vec<String> = nearest.into_iter().chain(allowed).collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `pumphouse.toml:12:3: error: subscriptions.orders.dispach: unknown key; did you mean …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, severity, key, message, .. } = self;
        write!(f, "{}:{line}:{column}: {severity}: ", file.display())?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(message)?;
        match self.help() {
            Some(help) => write!(f, "; {}", help.replace('\n', " ")),
            None => Ok(()),
        }
    }
}

/// Everything found in one configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    all: Vec<Diagnostic>,
    /// The text that snippets are cut from; what may be a secret is blotted out.
    text: Arc<str>,
}

impl Diagnostics {
    pub(crate) fn new(mut all: Vec<Diagnostic>, text: Arc<str>) -> Self {
        all.sort_by_key(|one| (one.span.start, one.severity == Severity::Warning));
        Self { all, text }
    }

    /// Each of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.all.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many errors there are.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.all.iter().filter(|one| one.severity == Severity::Error).count()
    }

    /// How many warnings there are.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.all.len() - self.errors()
    }

    /// All of them for a reader, each with the lines of the file that it is about.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH);
        let mut out = String::new();
        for one in &self.all {
            let source = NamedSource::new(one.file.to_string_lossy(), Arc::clone(&self.text));
            let shown = Shown { one, source };
            if !out.is_empty() {
                out.push('\n');
            }
            if handler.render_report(&mut out, &shown).is_err() {
                out.push_str(&format!("{one}\n"));
            }
        }
        out
    }
}

impl fmt::Display for Diagnostics {
    /// One line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.all.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Diagnostics {}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

/// A diagnostic beside its source, as the renderer wants it.
struct Shown<'a> {
    one: &'a Diagnostic,
    source: NamedSource<Arc<str>>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.one, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.one.key.is_empty() {
            write!(f, "{}: ", self.one.key)?;
        }
        f.write_str(&self.one.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        Some(Box::new(self.one.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.one.severity {
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.one.help().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        (!self.source.inner().is_empty()).then_some(&self.source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(None, self.one.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}
