//! Who got which message: what was published, what was handled, what is dead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// The ids of one tenant's messages.
#[derive(Debug, Default)]
pub(crate) struct Books {
    published: BTreeMap<&'static str, BTreeSet<String>>,
    handled: BTreeSet<String>,
    dead: BTreeSet<String>,
    logs: BTreeMap<PathBuf, u64>,
}

impl Books {
    pub(crate) fn published(&mut self, tenant: &'static str, id: String) {
        self.published.entry(tenant).or_default().insert(id);
    }

    pub(crate) fn count(&self) -> usize {
        self.published.values().map(BTreeSet::len).sum()
    }

    pub(crate) fn handled(&self) -> usize {
        self.handled.len()
    }

    pub(crate) fn dead(&self) -> usize {
        self.dead.len()
    }

    /// Reads on in a host's log, where it was left: the honest say which message they had, and who reads the dead
    /// letters says whose they are.
    pub(crate) fn read_on(&mut self, path: PathBuf) {
        let from = self.logs.get(&path).copied().unwrap_or(0);
        let Ok(mut file) = File::open(&path) else { return };
        if file.seek(SeekFrom::Start(from)).is_err() {
            return;
        }
        let (mut reader, mut line, mut at) = (BufReader::new(file), Vec::new(), from);
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0)
            && line.ends_with(b"\n")
        {
            at += line.len() as u64;
            self.note(&line);
            line.clear();
        }
        self.logs.insert(path, at);
    }

    fn note(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return };
        let field = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("target") != "pumphouse::guest" {
            return;
        }
        if field("text").starts_with("version=") {
            self.handled.insert(field("message_id").to_owned());
        } else if field("context") == "report" {
            self.dead.extend(original(field("text")));
        }
    }

    /// Whose messages are neither handled nor dead, and how many.
    pub(crate) fn lost(&self) -> Vec<(&'static str, usize)> {
        let lost = self.published.iter().map(|(tenant, ids)| {
            let gone = |id: &&String| !self.handled.contains(*id) && !self.dead.contains(*id);
            (*tenant, ids.iter().filter(gone).count())
        });
        lost.filter(|(_, count)| *count > 0).collect()
    }
}

/// Whose copy a report is about.
fn original(report: &str) -> Option<String> {
    let report: Value = serde_json::from_str(report).ok()?;
    let headers = report.get("headers")?.as_array()?;
    let named = headers.iter().filter_map(|header| header.as_array()?.as_slice().try_into().ok());
    let mut named =
        named.filter_map(|[name, value]: &[Value; 2]| Some((name.as_str()?, value.as_str()?)));
    named.find(|(name, _)| *name == "originalMessageId").map(|(_, id)| id.to_owned())
}
