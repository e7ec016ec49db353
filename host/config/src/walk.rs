//! Every key of the file against the table of keys.

use toml_span::value::{Key, Table, Value};

use crate::diagnostic::Code;
use crate::keys;
use crate::load::Build;
use crate::report::{At, Note, Report, Spot, join};
use crate::spelling::nearest;

/// Every transport that has a key of its own.
const TRANSPORTS: [&str; 4] = ["embedded", "sqs", "pubsub", "rocketmq"];
/// Names that a handler's author chooses, and that nothing is named after.
const FREE: [&str; 2] = ["<setting>", "<secret>"];
/// What a handler can't be granted yet.
const TO_COME: [&str; 2] = ["publish", "key_value"];
/// The longest name of a tenant, handler or subscription, in bytes.
const LONGEST_NAME: usize = 64;

/// Walks the whole file: remembers where each key stands and reports the ones that don't exist, stand in the
/// wrong place, or should be tables and aren't.
pub(crate) struct Walk<'a> {
    pub(crate) report: &'a Report<'a>,
    pub(crate) build: &'a Build,
}

/// Where the walk is: by the names in the file, and by the names in the table of keys.
#[derive(Clone, Default)]
struct Here {
    path: String,
    pattern: String,
}

impl Walk<'_> {
    pub(crate) fn all(&self, root: &Table<'_>) {
        self.level(root, &Here::default());
    }

    fn level(&self, table: &Table<'_>, here: &Here) {
        for (key, value) in table {
            self.entry(key, value, here);
        }
    }

    fn entry(&self, key: &Key<'_>, value: &Value<'_>, here: &Here) {
        let path = join(&here.path, &key.name);
        let spot = Spot { key: key.span.into(), value: value.span.into() };
        self.report.place(path.clone(), spot);
        let Some(step) = self.step(&key.name, here, &path) else { return };
        let pattern = keys::join(&here.pattern, step);
        if keys::find(&pattern).is_some() {
            return;
        }
        if keys::is_list(step) {
            return self.list(value, &path, &pattern);
        }
        match value.as_table() {
            Some(inner) => self.level(inner, &Here { path, pattern }),
            None => self.not_a_table(value, &path, &pattern),
        }
    }

    /// A list of tables, each of which is known by its place.
    fn list(&self, value: &Value<'_>, path: &str, pattern: &str) {
        let Some(items) = value.as_array() else {
            return self.not_a_list(value, path, pattern);
        };
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let spot = Spot { key: item.span.into(), value: item.span.into() };
            self.report.place(path.clone(), spot);
            match item.as_table() {
                Some(inner) => self.level(inner, &Here { path, pattern: pattern.to_owned() }),
                None => self.not_a_table(item, &path, pattern),
            }
        }
    }

    fn not_a_list(&self, value: &Value<'_>, path: &str, pattern: &str) {
        let found = article(value.as_ref().type_str());
        let message = format!("expected a list of tables, found {found}");
        let note = Note::new(Code::WrongType, message).allowed(listed(&keys::below(pattern)));
        self.report.error(path, At::Key, note);
    }

    /// The name in the table of keys that this name of the file is.
    fn step(&self, name: &str, here: &Here, path: &str) -> Option<&'static str> {
        let known = keys::below(&here.pattern);
        if let Some(any) = known.iter().find(|known| keys::is_any(known)) {
            self.check_name(name, any, path);
            return Some(any);
        }
        let Some(exact) = known.iter().find(|known| keys::written(known) == name) else {
            self.report.error(path, At::Key, self.unknown(name, &known, here));
            return None;
        };
        if TRANSPORTS.contains(exact) && !self.build.has(exact) {
            self.report.error(path, At::Key, self.no_transport(exact));
        }
        Some(exact)
    }

    fn check_name(&self, name: &str, any: &str, path: &str) {
        let free = FREE.contains(&any);
        let plain = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !free && !plain {
            let note = Note::new(Code::WrongValue, format!("`{}` is no name", name.escape_debug()));
            let allowed = format!("letters, digits, `-` and `_`, at most {LONGEST_NAME}");
            self.report.error(path, At::Key, note.allowed(allowed));
        }
    }

    fn unknown(&self, name: &str, known: &[&'static str], here: &Here) -> Note {
        if let Some((ours, theirs)) = other_transport(name, &here.pattern) {
            return Note::new(
                Code::UnknownKey,
                format!("`{name}` is a key of {theirs}; `{ours}` has no such key"),
            )
            .allowed(listed(known));
        }
        if here.pattern.ends_with(".grants")
            && let Some(name) = nearest(name, TO_COME)
        {
            return to_come(name).allowed(listed(known));
        }
        let shown = name.escape_debug();
        let message = if here.path.is_empty() {
            format!("unknown key `{shown}` at the top level")
        } else {
            format!("unknown key `{shown}` in `{}`", here.path)
        };
        let elsewhere = keys::ways_down(&here.pattern, name).first().copied();
        let near =
            elsewhere.or_else(|| nearest(name, known.iter().map(|name| keys::written(name))));
        Note::new(Code::UnknownKey, message).allowed(listed(known)).nearest(near)
    }

    fn no_transport(&self, name: &str) -> Note {
        let message = format!("this build has no transport `{name}`");
        Note::new(Code::Unsupported, message).allowed(listed(&self.build.names()))
    }

    fn not_a_table(&self, value: &Value<'_>, path: &str, pattern: &str) {
        let found = value.as_ref().type_str();
        let below = keys::below(pattern);
        let message = match below.first() {
            Some(any) if keys::is_any(any) => {
                format!("expected tables with names, `[{path}.NAME]`, found {}", article(found))
            }
            _ if value.as_array().is_some() => {
                format!("expected one table, `[{path}]`, found an array")
            }
            _ => format!("expected a table, found {}", article(found)),
        };
        let note = Note::new(Code::WrongType, message);
        let named = below.iter().any(|name| keys::is_any(name));
        let note = if named { note } else { note.allowed(listed(&below)) };
        self.report.error(path, At::Key, note);
    }
}

/// The transport that stands there, and those that have this key in its place.
fn other_transport(name: &str, pattern: &str) -> Option<(&'static str, String)> {
    let ours = TRANSPORTS.into_iter().find(|one| pattern.split('.').any(|part| part == *one))?;
    let has = |theirs: &&'static str| {
        let swapped: Vec<&str> =
            pattern.split('.').map(|part| if part == ours { *theirs } else { part }).collect();
        keys::below(&swapped.join(".")).contains(&name)
    };
    let theirs: Vec<&str> = TRANSPORTS.into_iter().filter(|one| *one != ours).filter(has).collect();
    match theirs.as_slice() {
        [] => None,
        [one] => Some((ours, format!("`{one}` alone"))),
        [first @ .., last] => Some((ours, format!("{} and `{last}`", listed(first)))),
    }
}

fn to_come(name: &str) -> Note {
    let message = format!(
        "`grants.{name}` is to come: this version has no such grant, and refuses a handler that imports its interface"
    );
    Note::new(Code::Unsupported, message)
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{}`", keys::written(name))).collect::<Vec<_>>().join(", ")
}

/// A type of TOML with its article.
pub(crate) fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['a', 'i']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}
