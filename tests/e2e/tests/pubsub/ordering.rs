//! FR-11 and FR-12: keys, seen from outside the process.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse_e2e::pubsub::{Project, emulator, message};
use pumphouse_e2e::{LONG, Line, Scene};
use serde_json::{Value, json};

use crate::common::{
    COUNTED, HOST, PAST_LEASES, PULL_ORDERED, STREAM_ORDERED, Way, counts, done, slowly_done, work,
};

pumphouse_e2e::tests! {
    fr_11_a_deferred_head_holds_its_key_and_no_other,
    fr_12_concurrency_never_reorders_a_key,
}

const ORDERED: [Way; 2] = [PULL_ORDERED, STREAM_ORDERED];

/// FR-11, S-6: A1 defers; A2 and A3 are not called before it has succeeded, B goes on. A pull takes one of a key at a
/// time, so the followers lose no delivery (C-18). What a stream has pushed behind the head goes back with it, which
/// counts: the listed exception.
fn fr_11_a_deferred_head_holds_its_key_and_no_other() {
    let project = Project::new("fr11");
    let rest = format!("max_deliveries = 3\nconcurrency = 8\n{COUNTED}");
    let scene = project.scene(&emulator(), HOST, &work(&ORDERED, &rest));
    let head = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 3_000 }, done()] });
    let a = [
        message(&head, "a", &json!({})),
        message(&done(), "a", &json!({})),
        message(&done(), "a", &json!({})),
    ];
    let b = [message(&slowly_done(50), "b", &json!({})), message(&done(), "b", &json!({}))];
    let host = scene.start();
    let sent = ORDERED.map(|way| {
        let ids = project.publish_messages(way.name, &[a.as_slice(), &b].concat());
        (way, ids)
    });
    host.until(LONG, "all handled", || scene.guest_said("done").len() == 10);
    assert_eq!(host.stop(), 0);
    let (ended, counts) = (scene.guest_said("done"), counts(&scene));
    for (way, ids) in &sent {
        let ours: Vec<&String> = ended.iter().filter(|id| ids.contains(id)).collect();
        let (a, b) = ids.split_at(3);
        // B ended while A waited.
        let wanted: Vec<&String> = b.iter().chain(a).collect();
        assert_eq!(ours, wanted, "{}", way.name);
        assert_eq!(counts[&a[0]], [0, 1], "{}", way.name);
        assert!(b.iter().all(|id| counts[id] == [0]), "{}: {counts:?}", way.name);
        // Called once, with budget left.
        let most = if *way == PULL_ORDERED { 0 } else { 1 };
        assert!(
            a[1..].iter().all(|id| counts[id].len() == 1 && counts[id][0] <= most),
            "{}: {counts:?}",
            way.name
        );
        project.assert_empty(way.name);
    }
}

const KEYS: usize = 5;
const EACH: usize = 100;

/// FR-12: 5 keys of 100 messages, 8 handlers of 0 to 20 ms: each key in its order and never two of it at once;
/// different keys overlap.
fn fr_12_concurrency_never_reorders_a_key() {
    let project = Project::new("fr12");
    let rest = format!("concurrency = 8\n{COUNTED}");
    let scene = project.scene(&emulator(), HOST, &work(&ORDERED, &rest));
    let host = scene.start();
    let sent = ORDERED.map(|way| publish_keys(&project, way));
    host.until(PAST_LEASES, "all handled", || {
        scene.guest_said("done").len() >= ORDERED.len() * KEYS * EACH
    });
    assert_eq!(host.stop(), 0);
    for (way, keys) in ORDERED.iter().zip(&sent) {
        let overlaps = check_order(&scene, keys);
        assert!(overlaps > 0, "{}: no two keys were handled at once", way.name);
        project.assert_empty(way.name);
    }
}

/// The ids of each key, in the order of their publication. The keys come in turns.
fn publish_keys(project: &Project, way: Way) -> Vec<Vec<String>> {
    let mut keys = vec![Vec::new(); KEYS];
    for _ in 0..EACH / 10 {
        let turn: Vec<Value> = (0..10 * KEYS)
            .map(|number| {
                let body = slowly_done(rand::random_range(0..=20));
                message(&body, &format!("key-{}", number % KEYS), &json!({}))
            })
            .collect();
        let ids = project.publish_messages(way.name, &turn);
        ids.into_iter().enumerate().for_each(|(number, id)| keys[number % KEYS].push(id));
    }
    keys
}

/// Follows the calls and their ends line by line; how often a call began while one of another key ran.
fn check_order(scene: &Scene, keys: &[Vec<String>]) -> usize {
    let of: BTreeMap<&str, usize> = keys
        .iter()
        .enumerate()
        .flat_map(|(key, ids)| ids.iter().map(move |id| (id.as_str(), key)))
        .collect();
    let mut began = vec![Vec::new(); keys.len()];
    let mut running: BTreeSet<usize> = BTreeSet::new();
    let mut overlaps = 0;
    for line in scene.lines().iter().filter(|line| line.is_guests()) {
        let id = line.field("message_id");
        let Some(&key) = of.get(id) else { continue };
        if is_begin(line) {
            assert!(running.insert(key), "key {key}: {id} began while another one of it ran");
            overlaps += usize::from(running.len() > 1);
            began[key].push(id.to_owned());
        } else if line.field("text") == "done" {
            assert!(running.remove(&key), "key {key}: {id}");
        }
    }
    for (key, (began, ids)) in began.iter().zip(keys).enumerate() {
        assert_eq!(began, ids, "key {key}");
    }
    overlaps
}

fn is_begin(line: &Line) -> bool {
    line.field("context") == "call"
}
