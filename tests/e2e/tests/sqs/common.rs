//! What many scenes have in common.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than the longest lease here, which is 31 s.
pub(crate) const PAST_LEASES: Duration = Duration::from_secs(90);
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

/// A subscription to a queue; its further lines follow.
pub(crate) fn subscription(name: &str, queue: &str, rest: &str) -> String {
    format!(
        "\n[subscriptions.{name}]\nsource = {{ sqs.queue = \"{queue}\" }}\nhandler = \"acme/work\"\n{rest}\n"
    )
}

/// One subscription alone.
pub(crate) fn work(queue: &str, rest: &str) -> String {
    WORK.to_owned() + &subscription("work", queue, rest)
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
