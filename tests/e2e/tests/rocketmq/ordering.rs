//! FR-11, FR-12 and FR-13: message groups, seen from outside the process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pumphouse_e2e::rocketmq::{QUEUES, Space, java_hash, message, proxy};
use pumphouse_e2e::{LONG, Line, Scene, block_on};
use pumphouse_test_brokers::remoting::code;
use serde_json::json;

use crate::common::{FIFO, HOST, PAST_LEASES, about, counts, done, set, slowly_done, work};

pumphouse_e2e::tests! {
    fr_11_a_deferred_head_holds_its_group_and_goes_before_it,
    fr_12_concurrency_never_reorders_a_group,
    fr_13_a_connection_that_closes_leaves_no_group_blocked,
}

/// Which of the eight queues a message group goes to.
fn queue(group: &str) -> u32 {
    java_hash(group).unsigned_abs() % QUEUES
}

fn ended(scene: &Scene, ids: &[String]) -> Vec<String> {
    scene.guest_said("done").into_iter().filter(|id| ids.contains(id)).collect()
}

/// FR-11, S-6: A1 defers; A2 and A3 are not called before it has succeeded and lose no delivery; B, on another queue,
/// goes on meanwhile. RocketMQ orders by queue, so a group that shares A's waits with it.
fn fr_11_a_deferred_head_holds_its_group_and_goes_before_it() {
    let space = Space::new("fr11");
    let rest = "max_deliveries = 3\nconcurrency = 8";
    let scene = space.scene(&space.place().namesrv, HOST, &work(&[FIFO], rest));
    let host = scene.start();
    assert_ne!(queue("a"), queue("b"));
    assert_eq!(queue("a"), queue("i"));
    let head = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 5_000 }, done()] });
    let a = space.send_group("fifo", "a", &[head, done(), done()]);
    let shares = space.send_group("fifo", "i", &[done()]);
    let b = space.send_group("fifo", "b", &[slowly_done(50), done()]);
    let all = [a.clone(), shares.clone(), b.clone()].concat();
    host.until(LONG, "all handled", || scene.guest_said("done").len() == all.len());
    assert_eq!(host.stop(), 0);
    // B ended while A waited, and what shares A's queue came behind it.
    assert_eq!(scene.guest_said("done"), [b, a.clone(), shares].concat());
    let mut counts = counts(&scene);
    assert_eq!(counts.remove(&a[0]).unwrap(), [0, 1]);
    for (id, counts) in counts {
        assert_eq!(counts, [0], "{id}, which never deferred");
    }
    space.assert_settled("fifo", true);
}

const GROUPS: usize = 5;
const EACH: usize = 100;

/// FR-12: 5 groups of 100 messages, 8 handlers of 0 to 20 ms: each group in its order and never two of it at once;
/// different groups overlap.
fn fr_12_concurrency_never_reorders_a_group() {
    let space = Space::new("fr12");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&[FIFO], "concurrency = 8"));
    let host = scene.start();
    let mut groups = vec![Vec::new(); GROUPS];
    for number in 0..GROUPS * EACH {
        let (group, body) = (number % GROUPS, slowly_done(rand::random_range(0..=20)));
        let message = message(&body).of(&format!("group-{group}"));
        groups[group].push(space.send_message("fifo", message));
    }
    host.until(PAST_LEASES, "all handled", || scene.guest_said("done").len() >= GROUPS * EACH);
    assert_eq!(host.stop(), 0);
    let overlaps = check_order(&scene, &groups);
    assert!(overlaps > 0, "no two groups were handled at once");
    assert!(scene.calls().iter().all(|call| call.count == 0), "each was given once");
    space.assert_settled("fifo", true);
}

/// Follows the calls and their ends line by line; how often a call began while one of another group ran.
fn check_order(scene: &Scene, groups: &[Vec<String>]) -> usize {
    let of: BTreeMap<&str, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, ids)| ids.iter().map(move |id| (id.as_str(), group)))
        .collect();
    let mut began = vec![Vec::new(); groups.len()];
    let mut running: BTreeSet<usize> = BTreeSet::new();
    let mut overlaps = 0;
    for line in scene.lines().iter().filter(|line| line.is_guests()) {
        let id = line.field("message_id");
        let Some(&group) = of.get(id) else { continue };
        if is_begin(line) {
            assert!(running.insert(group), "group {group}: {id} began while another of it ran");
            overlaps += usize::from(running.len() > 1);
            began[group].push(id.to_owned());
        } else if line.field("text") == "done" {
            assert!(running.remove(&group), "group {group}: {id}");
        }
    }
    for (group, (began, ids)) in began.iter().zip(groups).enumerate() {
        assert_eq!(began, ids, "group {group}");
    }
    overlaps
}

fn is_begin(line: &Line) -> bool {
    line.field("context") == "call"
}

/// FR-13: all connections are closed while K1 is in the handler. It is acknowledged over another one; K2 and K3 follow
/// within seconds, in order, and the group is free.
fn fr_13_a_connection_that_closes_leaves_no_group_blocked() {
    let space = Space::new("fr13");
    let proxy = proxy();
    let text = work(&[FIFO], "concurrency = 4").replace("deadline = \"2s\"", "deadline = \"20s\"");
    let scene = space.scene(&proxy.namesrv(), HOST, &text);
    let host = scene.start();
    let ids = space.send_group("fifo", "k", &[slowly_done(3_000), done(), done()]);
    host.until(LONG, "K1 in the handler", || scene.calls().len() == 1);
    block_on(proxy.cut());
    let cut = Instant::now();
    // Under a lease of 38 s.
    host.until(Duration::from_secs(20), "all three", || ended(&scene, &ids) == ids);
    let next = space.send_group("fifo", "k", &[done()]);
    host.until(Duration::from_secs(10), "the next of the group", || ended(&scene, &next) == next);
    assert!(cut.elapsed() < Duration::from_secs(30), "{:?}", cut.elapsed());
    let calls: Vec<u32> = scene.calls().iter().map(|call| call.count).collect();
    assert_eq!(calls, [0, 0, 0, 0], "each once");
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    let acknowledged = about(&space, "fifo");
    let acknowledged = proxy
        .requests()
        .iter()
        .filter(|one| one.code == code::ACK_MESSAGE && acknowledged(one))
        .count();
    assert_eq!(acknowledged, 4);
    assert_eq!(set(&scene.guest_said("done")), set(&[ids, next].concat()));
    space.assert_settled("fifo", true);
}
