//! What many scenes have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pumphouse_e2e::Scene;
use serde_json::{Value, json};

/// Longer than the longest lease here: a stream's is twice the handler's, which is 31 s at most.
pub(crate) const PAST_LEASES: Duration = Duration::from_secs(150);
/// The lines of `[host]`: an open poll is waited for half as long at most.
pub(crate) const HOST: &str = "grace = \"10s\"";

/// A handler that does what the body says.
pub(crate) const WORK: &str = r#"
[tenants.acme]
limits = { memory = "16MiB", deadline = "2s" }

[tenants.acme.handlers.work]
component = "{guests}/conformance.wasm"
grants.logging = true
"#;

/// A dead-letter policy of the subscription's own, far beyond every budget here: with one, deliveries are counted.
pub(crate) const COUNTED: &str =
    "native = { max_delivery_attempts = 100, dead_letter.topic = \"native\" }";

/// One of the four ways to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// As a subscription may be called.
    pub(crate) name: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) ordered: bool,
}

pub(crate) const PULL: Way = Way { name: "pull", mode: "pull", ordered: false };
pub(crate) const PULL_ORDERED: Way = Way { name: "pull-ordered", mode: "pull", ordered: true };
pub(crate) const STREAM: Way = Way { name: "stream", mode: "stream", ordered: false };
pub(crate) const STREAM_ORDERED: Way =
    Way { name: "stream-ordered", mode: "stream", ordered: true };
pub(crate) const WAYS: [Way; 4] = [PULL, PULL_ORDERED, STREAM, STREAM_ORDERED];

/// A subscription of the host, which reads one of Pub/Sub with the same name, on a topic with the same name; its
/// further lines follow.
pub(crate) fn subscription(name: &str, way: Way, rest: &str) -> String {
    let Way { mode, ordered, .. } = way;
    format!(
        "\n[subscriptions.{name}]\nsource = {{ pubsub = {{ subscription = \"{name}\", topic = \"{name}\", mode = \"{mode}\", ordered = {ordered} }} }}\nhandler = \"acme/work\"\n{rest}\n"
    )
}

/// One subscription of each of these ways, called as the way.
pub(crate) fn work(ways: &[Way], rest: &str) -> String {
    let each = ways.iter().map(|way| subscription(way.name, *way, rest));
    WORK.to_owned() + &each.collect::<String>()
}

/// Acknowledges, and says so as the last thing.
pub(crate) fn done() -> Value {
    json!({ "do": "log", "text": "done", "then": "ack" })
}

/// The same after a while.
pub(crate) fn slowly_done(ms: u64) -> Value {
    json!({ "do": "sleep", "ms": ms, "then": done() })
}

pub(crate) fn reject() -> Value {
    json!({ "do": "reject", "reason": "delivery-error", "text": "not wanted" })
}

pub(crate) fn set(ids: &[String]) -> BTreeSet<String> {
    ids.iter().cloned().collect()
}

/// The counts that the calls for each message saw, in their order.
pub(crate) fn counts(scene: &Scene) -> BTreeMap<String, Vec<u32>> {
    let mut counts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for call in scene.calls() {
        counts.entry(call.id).or_default().push(call.count);
    }
    counts
}

/// How often the hosts of a scene logged this.
pub(crate) fn said(scene: &Scene, message: &str) -> usize {
    scene.lines().iter().filter(|line| line.field("message") == message).count()
}
