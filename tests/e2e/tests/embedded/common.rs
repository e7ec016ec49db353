//! What many scenes have in common.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse_e2e::{Line, Scene};
use serde_json::{Value, json};

/// A handler that does what the body says.
pub(crate) const WORK: &str = r#"
[tenants.acme]
limits = { memory = "16MiB", deadline = "2s" }

[tenants.acme.handlers.work]
component = "{guests}/conformance.wasm"
grants.logging = true
"#;

/// The same, and a subscription that begins; its further lines follow.
pub(crate) fn work(rest: &str) -> String {
    format!(
        "{WORK}\n[subscriptions.work]\nsource = {{ embedded.queue = \"work\" }}\nhandler = \"acme/work\"\n{rest}\n"
    )
}

/// Acknowledges, and says so as the last thing.
pub(crate) fn done() -> Value {
    json!({ "do": "log", "text": "done", "then": "ack" })
}

/// The same after a while.
pub(crate) fn slowly_done(ms: u64) -> Value {
    json!({ "do": "sleep", "ms": ms, "then": done() })
}

/// One step for each delivery.
pub(crate) fn sequence(steps: &[Value]) -> Value {
    json!({ "do": "sequence", "steps": steps })
}

pub(crate) fn set(ids: &[String]) -> BTreeSet<String> {
    ids.iter().cloned().collect()
}

/// What a guest did, in the order of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Called(u32),
    Done,
}

/// All that the conformance guest did, in all runs.
pub(crate) fn deeds(scene: &Scene) -> Vec<(String, Deed)> {
    scene.logs().iter().flat_map(|log| log.lines()).filter_map(|line| deed(&line)).collect()
}

fn deed(line: &Line) -> Option<(String, Deed)> {
    if !line.is_guests() {
        return None;
    }
    let id = line.field("message_id").to_owned();
    if line.field("text") == "done" {
        return Some((id, Deed::Done));
    }
    let count = line.field("text").split(' ').find_map(|word| word.strip_prefix("count="))?;
    Some((id, Deed::Called(count.parse().ok()?)))
}

/// The counts that each message was called with, in order.
pub(crate) fn counts(scene: &Scene) -> BTreeMap<String, Vec<u32>> {
    let mut counts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for call in scene.calls() {
        counts.entry(call.id).or_default().push(call.count);
    }
    counts
}

/// A header of a message that was looked at.
pub(crate) fn header<'a>(message: &'a Value, name: &str) -> &'a str {
    let headers = message["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header[0] == name);
    found.and_then(|header| header[1].as_str()).unwrap_or_default()
}

/// The ids of the originals whose copies wait in a queue.
pub(crate) fn originals(scene: &Scene, queue: &str) -> Vec<String> {
    let waiting = scene.peek(queue);
    waiting.iter().map(|copy| header(copy, "originalMessageId").to_owned()).collect()
}
