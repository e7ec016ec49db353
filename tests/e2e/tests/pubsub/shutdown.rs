//! FR-36 where the broker is another process.

use std::time::{Duration, Instant};

use pumphouse_e2e::pubsub::{Project, emulator};
use pumphouse_e2e::{LONG, Signal, block_on};
use pumphouse_test_brokers::grpc::GrpcProxy;
use serde_json::json;

use crate::common::{PULL, STREAM, STREAM_ORDERED, WORK, done, slowly_done, subscription};

pumphouse_e2e::tests! {
    fr_36_what_an_open_pull_brings_is_given_back,
    fr_36_what_a_stream_pushed_and_holds_is_given_back_at_once,
}

const GRACE: Duration = Duration::from_secs(12);

fn long_deadline() -> String {
    WORK.replace("deadline = \"2s\"", "deadline = \"60s\"")
}

/// FR-36: what an open pull brings after the signal is there again at once, not after a lease of minutes; the
/// handler that needs 3 s finishes and its acknowledgement is sent; the endless one is cut, and its message there
/// again.
fn fr_36_what_an_open_pull_brings_is_given_back() {
    let project = Project::new("fr36-pull");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let text = long_deadline() + &subscription("pull", PULL, "concurrency = 12");
    let scene = project.scene(&proxy.endpoint(), "grace = \"12s\"", &text);
    let mut host = scene.start();
    let slow = project.publish("pull", &slowly_done(3_000));
    let endless = project.publish("pull", &json!({ "do": "loop" }));
    host.until(LONG, "two calls", || host.log.calls().len() == 2);
    host.until(LONG, "an open pull", || proxy.in_flight("Pull") >= 1);
    let asked = Instant::now();
    host.signal(Signal::TERM);
    host.until(LONG, "the drain", || {
        !host.log.saying("draining; a second signal is quicker").is_empty()
    });
    let pulls = proxy.count("Pull");
    let mut wanted = project.publish_all("pull", &vec![done(); 5]);
    assert_eq!(host.wait_exit(LONG), 0);
    let took = asked.elapsed();
    assert!(took < GRACE + Duration::from_secs(1), "{took:?}");
    let mut visible = ids(&project, "pull");
    wanted.push(endless);
    wanted.sort();
    visible.sort();
    assert_eq!(visible, wanted);
    assert_eq!(scene.guest_said("done"), [slow]);
    assert_eq!(proxy.count("Pull"), pulls, "no new pull");
    let left = project.left("pull");
    assert_eq!(left.len(), wanted.len(), "{left:#?}");
}

/// FR-36: what a stream has pushed ahead of the handlers is there again at once, in its order.
fn fr_36_what_a_stream_pushed_and_holds_is_given_back_at_once() {
    let project = Project::new("fr36-stream");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let text = long_deadline()
        + &subscription("stream", STREAM, "concurrency = 2")
        + &subscription("stream-ordered", STREAM_ORDERED, "concurrency = 2");
    let scene = project.scene(&proxy.endpoint(), "grace = \"12s\"", &text);
    let mut host = scene.start();
    let endless = json!({ "do": "loop" });
    let slow = [
        project.publish("stream", &slowly_done(3_000)),
        project.publish_keyed("stream-ordered", "a", &[slowly_done(3_000)]).remove(0),
    ];
    let cut = [
        project.publish("stream", &endless),
        project.publish_keyed("stream-ordered", "b", std::slice::from_ref(&endless)).remove(0),
    ];
    host.until(LONG, "four calls", || host.log.calls().len() == 4);
    let held = [
        project.publish_all("stream", &vec![done(); 5]),
        project.publish_keyed("stream-ordered", "b", &vec![done(); 5]),
    ];
    for name in ["stream", "stream-ordered"] {
        host.until(LONG, "held messages", || {
            host.metrics().sum("pumphouse_held", &[("subscription", name)]) == 5.0
        });
    }
    let asked = Instant::now();
    host.signal(Signal::TERM);
    // Long before the slow handler has ended.
    let visible = pumphouse_e2e::until_some(Duration::from_secs(2), "what was held", || {
        let visible = ids(&project, "stream");
        (!visible.is_empty()).then_some(visible)
    });
    assert_eq!(visible.len(), 5, "{visible:?}");
    assert!(visible.iter().all(|id| held[0].contains(id)), "{visible:?}");
    assert_eq!(host.wait_exit(LONG), 0);
    let took = asked.elapsed();
    assert!(took < GRACE + Duration::from_secs(1), "{took:?}");
    assert_eq!(ids(&project, "stream"), [cut[0].clone()]);
    // A head stays away for a second.
    let mut behind = Vec::new();
    pumphouse_e2e::until(Duration::from_secs(10), "all of the key", || {
        behind.extend(ids(&project, "stream-ordered"));
        behind.len() >= 6
    });
    // Of a head that is given back at once the emulator sends the next first.
    let head = behind.iter().position(|id| *id == cut[1]).expect("the endless one");
    behind.remove(head);
    assert_eq!(behind, held[1], "in their order");
    let mut ended = scene.guest_said("done");
    ended.sort();
    let mut slow = slow.to_vec();
    slow.sort();
    assert_eq!(ended, slow);
    for (name, left) in [("stream", 6), ("stream-ordered", 6)] {
        assert_eq!(project.left(name).len(), left, "{name}: what was handled is acknowledged");
    }
}

/// The messages that are there to be pulled, in their order.
fn ids(project: &Project, subscription: &str) -> Vec<String> {
    project.visible(subscription).into_iter().map(|one| one.id).collect()
}
