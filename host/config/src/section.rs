//! One table of the file, read key by key.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toml_span::value::{Table, Value};

use crate::keys::{self, Given, Key, Kind};
use crate::report::{At, Note, Report, join};
use crate::types::{DeduplicationKey, Secret};
use crate::values::{self, Bad};
use crate::words::Word;

/// Reads a value of a kind.
pub(crate) type Reader<T> = fn(&Value<'_>, &Kind) -> Result<T, Bad>;

/// A table, present or not. What is absent has its default; what is wrong is reported and has it too, since a
/// configuration with an error is never used.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    pub(crate) report: &'a Report<'a>,
    table: Option<&'a Table<'a>>,
    pattern: String,
    path: String,
}

impl<'a> Section<'a> {
    pub(crate) fn root(report: &'a Report<'a>, table: &'a Table<'a>) -> Self {
        Self { report, table: Some(table), pattern: String::new(), path: String::new() }
    }

    /// The table of that name in this one.
    pub(crate) fn below(&self, name: &str) -> Self {
        self.child(name, name)
    }

    /// The tables in this one, where it has names of the user's.
    pub(crate) fn each(&self) -> Vec<(String, Self)> {
        let Some(any) = keys::below(&self.pattern).into_iter().find(|name| keys::is_any(name))
        else {
            return Vec::new();
        };
        let names = self.names().into_iter();
        names
            .map(|name| (name.to_owned(), self.child(name, any)))
            .filter(|(_, child)| child.is_present())
            .collect()
    }

    /// The tables of a list in this one, in their order.
    pub(crate) fn items(&self, name: &str) -> Vec<Self> {
        let list = self.value(name).and_then(Value::as_array).into_iter().flatten();
        let item = |(index, value): (usize, &'a Value<'a>)| {
            let table = Some(value.as_table()?);
            let pattern = keys::join(&self.pattern, &format!("{name}[]"));
            let path = format!("{}[{index}]", self.path(name));
            Some(Self { report: self.report, table, pattern, path })
        };
        list.enumerate().filter_map(item).collect()
    }

    /// Every name that stands in this table.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        self.table.into_iter().flatten().map(|(key, _)| &*key.name).collect()
    }

    pub(crate) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The full path of a key in this table; of the table itself for the empty name.
    pub(crate) fn path(&self, name: &str) -> String {
        if name.is_empty() { self.path.clone() } else { join(&self.path, name) }
    }

    pub(crate) fn error(&self, name: &str, at: At, note: Note) {
        self.report.error(&self.path(name), at, note);
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.read(name, values::flag).unwrap_or_default()
    }

    pub(crate) fn integer(&self, name: &str) -> i64 {
        self.read(name, values::integer).unwrap_or_default()
    }

    /// A number whose bounds in the table of keys fit into 32 bits.
    pub(crate) fn count(&self, name: &str) -> Option<u32> {
        self.read(name, values::integer).and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.read(name, values::duration)
    }

    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        self.read(name, values::size)
    }

    pub(crate) fn word<T: Word>(&self, name: &str) -> Option<T> {
        self.text_word(name).and_then(|word| T::from_word(word))
    }

    /// The word as it stands in the table of keys.
    pub(crate) fn text_word(&self, name: &str) -> Option<&'static str> {
        self.read(name, values::word)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.read(name, values::text)
    }

    pub(crate) fn path_value(&self, name: &str) -> Option<PathBuf> {
        self.read(name, values::path)
    }

    pub(crate) fn listen(&self, name: &str) -> Option<SocketAddr> {
        self.read(name, values::listen).flatten()
    }

    pub(crate) fn url(&self, name: &str) -> Option<String> {
        self.read(name, values::url)
    }

    pub(crate) fn secret(&self, name: &str) -> Option<Secret> {
        self.read(name, values::secret)
    }

    pub(crate) fn deduplication_key(&self, name: &str) -> Option<DeduplicationKey> {
        self.read(name, values::deduplication_key)
    }

    /// What stands in this table by the user's names.
    pub(crate) fn named<T>(&self, read: Reader<T>) -> Vec<(String, T)> {
        let Some(any) = keys::below(&self.pattern).into_iter().find(|name| keys::is_any(name))
        else {
            return Vec::new();
        };
        let read = |name: &&str| Some(((*name).to_owned(), self.read_as(name, any, read)?));
        self.names().iter().filter_map(read).collect()
    }

    pub(crate) fn read<T>(&self, name: &str, read: Reader<T>) -> Option<T> {
        self.read_as(name, name, read)
    }

    fn read_as<T>(&self, name: &str, step: &str, read: Reader<T>) -> Option<T> {
        let key = keys::find(&keys::join(&self.pattern, step))?;
        let Some(value) = self.value(name) else { return self.absent(name, key, read) };
        match read(value, &key.kind) {
            Ok(value) => Some(value),
            Err(bad) => {
                self.report_bad(name, key, bad);
                default(key, read)
            }
        }
    }

    fn absent<T>(&self, name: &str, key: &Key, read: Reader<T>) -> Option<T> {
        if key.given == Given::Required {
            let message = format!("`{name}` is missing: {}", lower(key.meaning));
            let note = Note::new(crate::Code::Missing, message).allowed(key.kind.to_string());
            self.error(name, At::Key, note);
        }
        default(key, read)
    }

    fn report_bad(&self, name: &str, key: &Key, bad: Bad) {
        if bad.secret {
            self.report.blot(&self.path(name));
        }
        let note = Note::new(bad.code, bad.message).nearest(bad.nearest);
        self.error(name, At::Value, note.allowed(key.kind.to_string()));
    }

    fn child(&self, name: &str, step: &str) -> Self {
        Self {
            report: self.report,
            table: self.value(name).and_then(Value::as_table),
            pattern: keys::join(&self.pattern, step),
            path: join(&self.path, name),
        }
    }

    fn value(&self, name: &str) -> Option<&'a Value<'a>> {
        self.table.and_then(|table| table.get(name))
    }
}

/// The default is read like what stands in the file, so that what is documented is what is in force.
fn default<T>(key: &Key, read: Reader<T>) -> Option<T> {
    let Given::Default(text) = key.given else { return None };
    let line = format!("value = {text}");
    let document = toml_span::parse(&line).ok()?;
    read(document.pointer("/value")?, &key.kind).ok()
}

/// The first sentence of a meaning as the end of a message.
fn lower(meaning: &str) -> String {
    let sentence = meaning.split_inclusive(". ").next().unwrap_or(meaning);
    let mut characters = sentence.chars();
    let first = characters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", characters.as_str()).trim_end_matches(['.', ' ']).to_owned()
}
