//! FR-36: stop asking, finish or give back, leave in time.

use std::time::{Duration, Instant};

use pumphouse_e2e::{Host, LONG, Scene, Signal};
use serde_json::json;

use crate::common::{done, slowly_done};

pumphouse_e2e::tests! {
    fr_36_a_drain_finishes_cuts_and_ends_within_the_grace,
    fr_36_process_one_drains_as_well,
    fr_36_a_second_signal_is_quicker,
    an_idle_host_leaves_at_once,
}

const HANDLER: &str = r#"
[tenants.acme]
limits = { memory = "16MiB", deadline = "60s" }

[tenants.acme.handlers.work]
component = "{guests}/conformance.wasm"
grants.logging = true

[subscriptions.work]
source = { embedded.queue = "work" }
handler = "acme/work"
concurrency = 16
"#;

/// A host with one handler that needs 3 s and one that loops for ever, both called.
fn busy(scene: &Scene, host: &Host) -> [String; 2] {
    let slow = scene.publish("work", &slowly_done(3_000));
    let endless = scene.publish("work", &json!({ "do": "loop" }));
    host.until(LONG, "two calls", || host.log.calls().len() == 2);
    [slow, endless]
}

/// The host was told to stop: what it does until it ends, and how its next life finds the queue.
fn ends_in_time(scene: &Scene, mut host: Host, grace: Duration) {
    let [slow, endless] = busy(scene, &host);
    let asked = Instant::now();
    host.signal(Signal::TERM);
    host.until(LONG, "the drain", || {
        !host.log.saying("draining; a second signal is quicker").is_empty()
    });
    // The admin side still answers: what comes now stays in the queue, untouched.
    let late = scene.publish_all("work", &[], &vec![done(); 5]);
    assert_eq!(host.readiness(), 503);
    assert_eq!(host.wait_exit(grace + Duration::from_secs(5)), 0);
    let took = asked.elapsed();
    assert!(took < grace + Duration::from_secs(1), "{took:?}");
    assert!(took >= Duration::from_secs(2), "the slow handler was not waited for: {took:?}");
    assert_eq!(scene.guest_said("done"), [slow], "the slow one finished, and nothing else began");

    // Given back at once, not after the lease: the next host is called with all six soon.
    let next = scene.start();
    let began = Instant::now();
    next.until(LONG, "what was given back", || {
        let ids: Vec<String> = next.log.calls().into_iter().map(|call| call.id).collect();
        ids.contains(&endless) && late.iter().all(|id| ids.contains(id))
    });
    assert!(began.elapsed() < Duration::from_secs(15), "a lease of 78 s was waited for");
    let calls = next.log.calls();
    assert!(calls.iter().all(|call| call.count == u32::from(call.id == endless)), "{calls:?}");
    next.kill();
}

/// FR-36: SIGTERM with a handler that needs 3 s, an endless one, and messages that come meanwhile.
fn fr_36_a_drain_finishes_cuts_and_ends_within_the_grace() {
    let scene = Scene::with_host("grace = \"8s\"", HANDLER);
    let host = scene.start();
    ends_in_time(&scene, host, Duration::from_secs(8));
}

/// FR-36: the same as process 1, where no signal has an effect by default.
fn fr_36_process_one_drains_as_well() {
    let scene = Scene::with_host("grace = \"8s\"", HANDLER);
    let mut words = vec!["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if !pumphouse_e2e::is_root() {
        words.push("--map-root-user");
    }
    let mut host = scene.spawn_through(&words);
    host.aim_at_child();
    host.wait_ready();
    ends_in_time(&scene, host, Duration::from_secs(8));
}

/// FR-36: a second signal, of either kind, does not wait for the grace.
fn fr_36_a_second_signal_is_quicker() {
    for second in [Signal::TERM, Signal::INT] {
        let scene = Scene::with_host("grace = \"40s\"", HANDLER);
        let mut host = scene.start();
        let [slow, endless] = busy(&scene, &host);
        let asked = Instant::now();
        host.signal(Signal::INT);
        host.until(LONG, "the drain", || {
            !host.log.saying("draining; a second signal is quicker").is_empty()
        });
        host.signal(second);
        assert_eq!(host.wait_exit(LONG), 0);
        // Cutting takes 5 s at most, long before the grace is over.
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        // Both were given back, neither was acknowledged.
        let next = scene.start();
        next.until(LONG, "both again", || {
            let again = next.log.calls();
            [&slow, &endless].iter().all(|id| again.iter().any(|call| call.id == **id))
        });
        next.kill();
    }
}

/// An idle host leaves at once, and a signal during the start is a clean end too.
fn an_idle_host_leaves_at_once() {
    let scene = Scene::with_host("grace = \"40s\"", HANDLER);
    let host = scene.start();
    let asked = Instant::now();
    assert_eq!(host.stop(), 0);
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let mut host = scene.spawn();
    host.until(LONG, "the process", || !host.log.text().is_empty() || host.readiness() != 0);
    host.signal(Signal::TERM);
    assert_eq!(host.wait_exit(LONG), 0);
}
