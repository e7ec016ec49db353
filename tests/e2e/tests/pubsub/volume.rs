//! Many messages, with everything that happens to them.

use pumphouse_e2e::pubsub::{Project, emulator};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};
use serde_json::{Value, json};

use crate::common::{
    COUNTED, HOST, PAST_LEASES, PULL, STREAM, counts, done, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    a_thousand_messages_with_deferrals_faults_and_kills_are_all_handled,
}

const ALL: usize = 1_000;

/// C-1, C-19: a thousand through a stream and a thousand through pulls, of which some are deferred, some fault, some
/// take long; the host is killed and the streams are closed meanwhile. Every one is handled, none is left.
fn a_thousand_messages_with_deferrals_faults_and_kills_are_all_handled() {
    let project = Project::new("volume");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest = format!(
        "concurrency = 32\nretry = {{ backoff = \"1s\", max_backoff = \"2s\" }}\n{COUNTED}"
    );
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[PULL, STREAM], &rest));
    let mut host = scene.start();
    let mut sent = Vec::new();
    for way in [PULL, STREAM] {
        for _ in 0..ALL / 100 {
            let bodies: Vec<Value> = (0..100).map(|_| body()).collect();
            sent.extend(project.publish_all(way.name, &bodies));
        }
    }
    host.until(PAST_LEASES, "a tenth", || scene.guest_said("done").len() >= ALL / 5);
    host.kill();
    host = scene.start();
    host.until(PAST_LEASES, "a third", || scene.guest_said("done").len() >= 2 * ALL / 3);
    proxy.reset_streams(code::UNAVAILABLE);
    block_on(proxy.cut());
    host.until(PAST_LEASES, "all", || set(&sent).is_subset(&set(&scene.guest_said("done"))));
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    for (id, counts) in &counts(&scene) {
        assert!(counts.is_sorted_by(|a, b| a < b), "{id} was called with the counts {counts:?}");
    }
    project.assert_empty("pull");
    project.assert_empty("stream");
}

fn body() -> Value {
    let first = match rand::random_range(0..10) {
        0..2 => json!({ "do": "defer", "ms": 1_000 }),
        2 => json!({ "do": "trap", "text": "on purpose" }),
        3 => slowly_done(100),
        _ => done(),
    };
    json!({ "do": "sequence", "steps": [first, done()] })
}
