//! The broker dies while the host handles, and comes back with what it wrote down.

use pumphouse_e2e::rocketmq::{Space, Where, started};
use pumphouse_e2e::{Host, LONG, Scene, block_on};
use pumphouse_test_brokers::Setup;
use serde_json::json;

use crate::common::{
    DEAD, HOST, PAST_LEASES, WAYS, Way, counts_of, reject, send_many, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    a_broker_killed_while_handling_loses_nothing_and_counts_go_on,
    a_broker_that_is_told_to_end_keeps_every_count,
}

const RETRY: &str = "retry = { backoff = \"1s\", max_backoff = \"1s\", jitter = \"none\" }";

/// What is in the broker when it goes: messages that are handled, copies on their way, and one message of each kind
/// that is deferred for ever, so that its counts can be followed.
struct Load {
    handled: Vec<String>,
    rejected: Vec<(Way, Vec<String>)>,
    deferred: Vec<(Way, String)>,
}

impl Load {
    fn put(space: &Space) -> Self {
        let groups =
            |way: Way, body: &serde_json::Value, times: usize| send_many(space, way, body, times);
        let defer = pumphouse_e2e::rocketmq::message(&json!({ "do": "defer" })).of("h");
        Self {
            deferred: WAYS
                .iter()
                .map(|way| (*way, space.send_message(way.name, defer.clone())))
                .collect(),
            // Groups `a` to `f`: none waits behind the one that is deferred.
            handled: WAYS.map(|way| groups(way, &slowly_done(400), 6)).concat(),
            rejected: WAYS.iter().map(|way| (*way, groups(*way, &reject(), 6))).collect(),
        }
    }

    fn is_handled(&self, scene: &Scene) -> bool {
        set(&self.handled).is_subset(&set(&scene.guest_said("done")))
    }
}

/// Waits until every deferred message was called with a count beyond this one.
fn counts_pass(host: &Host, scene: &Scene, load: &Load, most: u32) {
    for (way, id) in &load.deferred {
        let what = format!("{}: a count beyond {most}", way.name);
        host.until(PAST_LEASES, &what, || highest(scene, id) > most);
    }
}

fn assert_nothing_lost(space: &Space, load: &Load) {
    for (way, ids) in &load.rejected {
        let copies = space.stored(&format!("dead-{}", way.name));
        let originals: Vec<String> =
            copies.iter().map(|copy| copy.property("originalMessageId").to_owned()).collect();
        // A copy whose confirmation died with the broker, or whose original came again, is there twice.
        assert_eq!(set(&originals), set(ids), "{}", way.name);
    }
}

/// Its store is durable over a SIGKILL: nothing is lost, and counts go on. What it had not written down yet is gone,
/// some seconds of who has what: on a normal topic the deliveries of the last seconds come again beside the newest, each
/// with a count that goes on by itself; on a FIFO topic the count falls back once and goes on from there.
fn a_broker_killed_while_handling_loses_nothing_and_counts_go_on() {
    let mut server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "killed");
    let rest = format!("concurrency = 8\n{RETRY}\n{DEAD}");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let load = Load::put(&space);
    host.until(LONG, "some calls", || host.log.calls().len() >= 8);
    for beyond in [2, 7] {
        counts_pass(&host, &scene, &load, beyond);
        let most = load.deferred.iter().map(|(_, id)| highest(&scene, id)).max().unwrap();
        server.kill_broker(0);
        host.until(LONG, "readiness that is refused", || host.readiness() == 503);
        block_on(server.restart_broker(0)).unwrap();
        host.until(PAST_LEASES, "every message handled", || load.is_handled(&scene));
        counts_pass(&host, &scene, &load, most);
    }
    host.until(PAST_LEASES, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    assert_nothing_lost(&space, &load);
    for (way, id) in &load.deferred {
        let counts = counts_of(&scene, id);
        let what = format!("{}: {counts:?}", way.name);
        assert_eq!(counts[0], 0, "{what}");
        let falls = counts.windows(2).filter(|two| two[1] <= two[0]).count();
        assert!(!way.ordered || falls <= 2, "one for each kill; {what}");
        // Each goes on from where it was; an answer that died with the broker is counted too.
        let goes_on = |at: usize| {
            let before = &counts[..at];
            counts[at] <= 1
                || before.contains(&(counts[at] - 1))
                || before.contains(&(counts[at] - 2))
        };
        let jumps: Vec<usize> = (1..counts.len()).filter(|at| !goes_on(*at)).collect();
        assert_eq!(jumps, Vec::<usize>::new(), "{what}");
    }
}

fn highest(scene: &Scene, id: &str) -> u32 {
    counts_of(scene, id).into_iter().max().unwrap_or_default()
}

/// SIGTERM lets the broker write everything down: on both kinds of topic counts only rise.
fn a_broker_that_is_told_to_end_keeps_every_count() {
    let mut server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "ended");
    let rest = format!("concurrency = 8\n{RETRY}\n{DEAD}");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let load = Load::put(&space);
    counts_pass(&host, &scene, &load, 2);
    block_on(server.stop_broker(0)).unwrap();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(server.restart_broker(0)).unwrap();
    host.until(PAST_LEASES, "every message handled", || load.is_handled(&scene));
    let most = load.deferred.iter().map(|(_, id)| highest(&scene, id)).max().unwrap();
    counts_pass(&host, &scene, &load, most + 2);
    assert_eq!(host.stop(), 0);
    assert_nothing_lost(&space, &load);
    for (way, id) in &load.deferred {
        let counts = counts_of(&scene, id);
        assert!(counts.is_sorted_by(|a, b| a < b), "{}: {counts:?}", way.name);
    }
}
