//! What many scenes have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pumphouse_e2e::Scene;
use pumphouse_e2e::rocketmq::{Space, message};
use pumphouse_test_brokers::remoting::Request;
use serde_json::{Value, json};

/// The lease of a handler with a deadline of two seconds, where its subscription has a destination. Without one it is
/// ten seconds less.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Longer than the longest lease here, on a machine that does many things at once.
pub(crate) const PAST_LEASES: Duration = Duration::from_secs(120);
/// The lines of `[host]`.
pub(crate) const HOST: &str = "grace = \"10s\"";

/// A handler that does what the body says.
pub(crate) const WORK: &str = r#"
[tenants.acme]
limits = { memory = "16MiB", deadline = "2s" }

[tenants.acme.handlers.work]
component = "{guests}/conformance.wasm"
grants.logging = true
"#;

/// A destination of its own for each kind of topic.
pub(crate) const DEAD: &str = "dead_letter = { rocketmq.topic = \"{space}-dead-{way}\" }";

pub(crate) const FAILED: &str = "settlement failed; the message may be handled again";

/// One of the two kinds of topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// As a subscription may be called; also what the configuration calls it.
    pub(crate) name: &'static str,
    pub(crate) ordered: bool,
}

pub(crate) const NORMAL: Way = Way { name: "normal", ordered: false };
pub(crate) const FIFO: Way = Way { name: "fifo", ordered: true };
pub(crate) const WAYS: [Way; 2] = [NORMAL, FIFO];

/// A subscription of the host to the topic of the same name in the test's space, as the group `<name>-work`; its
/// further lines follow, in which `{way}` stands for the kind.
pub(crate) fn subscription(name: &str, way: Way, rest: &str) -> String {
    let kind = way.name;
    let rest = rest.replace("{way}", kind);
    format!(
        "\n[subscriptions.{name}]\nsource = {{ rocketmq = {{ topic = \"{{space}}-{name}\", group = \"{{space}}-{name}-work\", kind = \"{kind}\" }} }}\nhandler = \"acme/work\"\n{rest}\n"
    )
}

/// One subscription for each of these kinds, called as the kind.
pub(crate) fn work(ways: &[Way], rest: &str) -> String {
    let each = ways.iter().map(|way| subscription(way.name, *way, rest));
    WORK.to_owned() + &each.collect::<String>()
}

/// Sends a body to a topic of this kind; on a FIFO topic, of one message group. Its id.
pub(crate) fn send_to(space: &Space, topic: &str, way: Way, body: &Value) -> String {
    let message = message(body);
    space.send_message(topic, if way.ordered { message.of("a") } else { message })
}

/// The same to the topic that is called as the kind.
pub(crate) fn send(space: &Space, way: Way, body: &Value) -> String {
    send_to(space, way.name, way, body)
}

/// Sends a body so often; on a FIFO topic, each time of another message group, and no two of the first eight share a
/// queue. The ids.
pub(crate) fn send_many(space: &Space, way: Way, body: &Value, times: usize) -> Vec<String> {
    let groups = ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().cycle();
    let each = groups.take(times).map(|group| {
        let message = message(body);
        space.send_message(way.name, if way.ordered { message.of(group) } else { message })
    });
    each.collect()
}

/// Requests about the consumer group of a subscription.
pub(crate) fn about(space: &Space, name: &str) -> impl Fn(&Request) -> bool + Send + Sync + use<> {
    let group = space.name(&format!("{name}-work"));
    move |request: &Request| pumphouse_e2e::rocketmq::group_of(request) == group
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

/// The counts that the calls for one message saw.
pub(crate) fn counts_of(scene: &Scene, id: &str) -> Vec<u32> {
    let ours = scene.calls().into_iter().filter(|call| call.id == id);
    ours.map(|call| call.count).collect()
}

/// How often the hosts of a scene logged this.
pub(crate) fn said(scene: &Scene, message: &str) -> usize {
    scene.lines().iter().filter(|line| line.field("message") == message).count()
}

/// The lines of a scene's hosts with this message.
pub(crate) fn saying(scene: &Scene, message: &str) -> Vec<String> {
    let lines = scene.lines().into_iter().filter(|line| line.field("message") == message);
    lines.map(|line| line.text).collect()
}

/// Asserts that every message was called with counts that only rise.
pub(crate) fn assert_rising(scene: &Scene) {
    let falling: Vec<_> = counts(scene)
        .into_iter()
        .filter(|(_, counts)| !counts.is_sorted_by(|a, b| a < b))
        .collect();
    assert_eq!(falling, [], "messages of which a count did not rise");
}
