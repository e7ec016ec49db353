//! The host dies without warning. What was published and is neither handled, nor at a destination, nor still in its
//! queue, is lost: there must be no such message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pumphouse_e2e::{LONG, Scene, run};
use serde_json::json;

use crate::common::{Deed, counts, deeds, done, originals, sequence, set, slowly_done, work};

pumphouse_e2e::tests! {
    a_host_killed_while_handling_loses_nothing_and_goes_on_counting,
    kills_around_copies_and_marks_lose_nothing,
    a_second_host_on_the_same_state_directory_is_refused,
}

/// Longer than the longest lease here, which is 30 s.
const PAST_LEASES: Duration = Duration::from_secs(90);

/// C-1, C-3, C-19, S-6: counts, delays and order go on where they were.
fn a_host_killed_while_handling_loses_nothing_and_goes_on_counting() {
    let scene = Scene::new(&work("concurrency = 8\nretry = { backoff = \"100ms\" }"));
    let mut host = scene.start();
    let plain = scene.publish_all("work", &[], &vec![slowly_done(400); 60]);
    let delayed = json!({ "do": "defer", "ms": 4_000 });
    let deferred = sequence(&[delayed, slowly_done(200)]);
    let deferred = scene.publish_all("work", &[], &vec![deferred; 20]);
    let keyed: Vec<Vec<String>> = ["a", "b", "c", "d"]
        .iter()
        .map(|key| scene.publish_all("work", &["--key", key], &vec![slowly_done(200); 5]))
        .collect();

    for _ in 0..2 {
        host.until(LONG, "some calls", || host.log.calls().len() >= 12);
        let log = host.kill();
        let done = set(&log.guest_said("done"));
        let begun: BTreeSet<String> = log.calls().into_iter().map(|call| call.id).collect();
        assert!(begun.difference(&done).next().is_some(), "nothing was in a handler at the kill");
        host = scene.start();
    }
    let all: BTreeSet<String> =
        plain.iter().chain(&deferred).chain(keyed.iter().flatten()).cloned().collect();
    assert_eq!(all.len(), 100);
    host.until(PAST_LEASES, "every message handled", || set(&scene.guest_said("done")) == all);
    host.until(LONG, "an empty queue", || scene.peek("work").is_empty());
    assert_eq!(host.stop(), 0);

    for (id, counts) in counts(&scene) {
        assert!(counts.is_sorted_by(|a, b| a < b), "{id} was called with the counts {counts:?}");
    }
    deferrals_kept_their_delay(&scene, &deferred);
    keyed.iter().for_each(|of_a_key| order_was_kept(&scene, of_a_key));
}

fn deferrals_kept_their_delay(scene: &Scene, deferred: &[String]) {
    let mut calls = BTreeMap::new();
    for call in scene.calls() {
        calls.entry(call.id.clone()).or_insert_with(Vec::new).push(call);
    }
    for id in deferred {
        let [first, second, ..] = calls[id].as_slice() else { panic!("{id} came once") };
        assert!(second.since(first) >= Duration::from_millis(3_900), "{first:?}, {second:?}");
    }
}

/// No message of the key is called before the one ahead of it was done.
fn order_was_kept(scene: &Scene, of_a_key: &[String]) {
    let deeds = deeds(scene);
    let first = |id: &String, wanted: fn(Deed) -> bool| {
        deeds.iter().position(|(of, deed)| of == id && wanted(*deed)).expect("a deed")
    };
    for pair in of_a_key.windows(2) {
        let done = first(&pair[0], |deed| deed == Deed::Done);
        let called = first(&pair[1], |deed| matches!(deed, Deed::Called(_)));
        assert!(done < called, "{} was called before {} was done", pair[1], pair[0]);
    }
}

/// C-9, C-19, S-5: killed between a confirmed copy and the removal, and between the mark and the acknowledgement, in
/// the midst of a stream of both. A message that was cut off there comes again; its copy or its mark is known.
fn kills_around_copies_and_marks_lose_nothing() {
    let scene = Scene::new(&work(
        "concurrency = 8\ndead_letter = { embedded.queue = \"dead\" }\ndeduplicate = {}\nretry = { backoff = \"100ms\" }",
    ));
    let (mut rejected, mut handled) = (BTreeSet::new(), BTreeSet::new());
    let bodies = [json!({ "do": "reject", "text": "no" }), done()];
    for round in 0..12 {
        let host = scene.start();
        let enough = 1 + round % 7;
        std::thread::scope(|scope| {
            let publishing =
                bodies.each_ref().map(|body| scope.spawn(|| publish_while_it_lives(&scene, body)));
            host.until(LONG, "copies", || {
                host.log.saying("rejected message routed").len() >= enough
            });
            host.kill();
            let [no, yes] = publishing.map(|thread| thread.join().unwrap());
            rejected.extend(no);
            handled.extend(yes);
        });
    }
    let host = scene.start();
    host.until(PAST_LEASES, "an empty queue", || scene.peek("work").is_empty());

    let copies = originals(&scene, "dead");
    assert_eq!(rejected.difference(&set(&copies)).count(), 0, "rejected messages were lost");
    // A second copy of the same rejection is recognised and dropped by this broker.
    assert_eq!(copies.len(), set(&copies).len());
    let done = set(&scene.guest_said("done"));
    assert_eq!(handled.difference(&done).count(), 0, "messages were lost");
    let cut_off = routed_more_than_once(&scene);
    let duplicates = host.metrics().sum("pumphouse_dedup_hits_total", &[]);
    assert!(cut_off > 0 || duplicates > 0.0, "no kill came at such a moment");
    assert_eq!(host.stop(), 0);
}

/// Eight messages, or as many as the host takes before it dies; the ids of those that it confirmed.
fn publish_while_it_lives(scene: &Scene, body: &serde_json::Value) -> Vec<String> {
    let ran = scene.try_publish("work", &[], &vec![body.clone(); 8]);
    let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.filter_map(|line: serde_json::Value| line["id"].as_str().map(str::to_owned)).collect()
}

fn routed_more_than_once(scene: &Scene) -> usize {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for line in scene.lines() {
        if line.field("message") == "rejected message routed" {
            *times.entry(line.field("message_id").to_owned()).or_default() += 1;
        }
    }
    times.values().filter(|times| **times > 1).count()
}

/// One host owns a state directory; the other one is told who has it, and what to do.
fn a_second_host_on_the_same_state_directory_is_refused() {
    let scene = Scene::new(&work(""));
    let host = scene.start();
    let other = Scene::new(&work(""));
    let text = other
        .text(&work(""))
        .replace(other.path("state").to_str().unwrap(), scene.path("state").to_str().unwrap());
    std::fs::write(other.config(), text).unwrap();
    let config = other.config();
    let ran = run(&mut other.pumphouse(&["run".as_ref(), config.as_os_str()]), "");
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("another host is using host.state"), "{ran:#?}");
    assert!(ran.stderr.contains(scene.path("state").to_str().unwrap()), "{ran:#?}");
    // The first one did not notice.
    let id = scene.publish("work", &done());
    host.until(LONG, "the message", || scene.guest_said("done").contains(&id));
    assert_eq!(host.stop(), 0);
}
