//! FR-36 where the broker is another process, and how long an end takes.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pumphouse_e2e::rocketmq::{Space, Where, message, proxy, started};
use pumphouse_e2e::{Host, LONG, Signal, block_on};
use pumphouse_test_brokers::Setup;
use pumphouse_test_brokers::remoting::code;
use serde_json::json;

use crate::common::{
    FIFO, HOST, NORMAL, WAYS, counts_of, done, send, send_many, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    fr_36_what_an_open_poll_brings_is_given_back,
    an_idle_host_ends_within_five_seconds,
    a_host_whose_broker_is_dead_ends_within_five_seconds,
    a_host_whose_broker_just_died_ends_within_five_seconds,
    a_host_whose_broker_was_just_killed_ends_within_five_seconds,
    nothing_is_on_standard_output_and_no_line_is_the_clients,
}

const GRACE: Duration = Duration::from_secs(12);

/// In which a host without anything to finish ends.
const MOST: Duration = Duration::from_secs(5);

/// FR-36: what open polls bring after the signal is there again at once, not after a lease of minutes; the handler
/// that needs 3 s finishes and its acknowledgement is sent; the endless one is cut, and its message there again.
fn fr_36_what_an_open_poll_brings_is_given_back() {
    let space = Space::new("fr36");
    let proxy = proxy();
    let text = work(&WAYS, "concurrency = 12").replace("deadline = \"2s\"", "deadline = \"60s\"");
    let scene = space.scene(&proxy.namesrv(), "grace = \"12s\"", &text);
    let mut host = scene.start();
    let of = |way: crate::common::Way, group: &str, body: &serde_json::Value| {
        space.send_message(way.name, message(body).of(group))
    };
    let slow = WAYS.map(|way| of(way, "g", &slowly_done(3_000)));
    let endless = WAYS.map(|way| of(way, "h", &json!({ "do": "loop" })));
    host.until(LONG, "four calls", || host.log.calls().len() == 4);
    host.until(LONG, "open polls", || proxy.in_flight(code::POP_MESSAGE) >= 2);
    let asked = Instant::now();
    host.signal(Signal::TERM);
    host.until(LONG, "the drain", || {
        !host.log.saying("draining; a second signal is quicker").is_empty()
    });
    let pops = proxy.count(code::POP_MESSAGE);
    let late = WAYS.map(|way| send_many(&space, way, &done(), 5));
    assert_eq!(host.wait_exit(LONG), 0);
    let took = asked.elapsed();
    assert!(took < GRACE + Duration::from_secs(1), "{took:?}");
    assert_eq!(set(&scene.guest_said("done")), set(&slow));
    assert_eq!(proxy.count(code::POP_MESSAGE), pops, "no new poll");
    for ((way, late), endless) in WAYS.iter().zip(late).zip(endless) {
        // Under a lease of 78 s. A normal topic's also wait until the broker looks, some 2 s.
        let found = space.visible_within(Duration::from_secs(20), way.name, way.ordered, 6);
        let ids: Vec<String> = found.into_iter().map(|one| one.id).collect();
        assert_eq!(set(&ids), set(&[late, vec![endless]].concat()), "{}", way.name);
        assert_eq!(ids.len(), 6, "{}", way.name);
    }
}

/// An idle host with open polls ends in time, whatever its grace.
fn an_idle_host_ends_within_five_seconds() {
    let space = Space::new("idle");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), "grace = \"40s\"", &work(&WAYS, ""));
    let host = scene.start();
    host.until(LONG, "polls", || proxy.in_flight(code::POP_MESSAGE) >= 2);
    let took = ended(host);
    assert!(took < MOST, "{took:?}");
}

/// Neither the name server nor the broker can be reached any more: the end does not wait for them.
fn a_host_whose_broker_is_dead_ends_within_five_seconds() {
    let space = Space::new("dead-broker");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), "grace = \"40s\"", &work(&WAYS, ""));
    for silent in [false, true] {
        let host = scene.start();
        host.until(LONG, "polls", || proxy.in_flight(code::POP_MESSAGE) >= 2);
        if silent {
            // Connections that were forgotten on the way: nobody says that they are closed.
            proxy.half_open();
        }
        block_on(proxy.refuse(true));
        if !silent {
            block_on(proxy.cut());
            let waits = |name| host.status_of("subscriptions", name)["condition"] == "waiting";
            host.until(LONG, "both waiting", || WAYS.iter().all(|way| waits(way.name)));
        }
        let took = ended(host);
        assert!(took < MOST, "silent {silent}: {took:?}");
        block_on(proxy.heal());
    }
}

/// The connections of open polls were just closed, and nobody is there any more, when the host is told to end. The client
/// leaves such a poll without an answer; the host does not wait for one, however old the poll is.
fn a_host_whose_broker_just_died_ends_within_five_seconds() {
    let space = Space::new("just-dead");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), "grace = \"40s\"", &work(&WAYS, ""));
    for age in [0, 400, 1_100, 1_900, 2_700].map(Duration::from_millis) {
        let host = scene.start();
        host.until(LONG, "polls", || proxy.in_flight(code::POP_MESSAGE) >= 2);
        sleep(age);
        block_on(proxy.refuse(true));
        block_on(proxy.cut());
        let took = ended(host);
        assert!(took < MOST, "polls of {age:?}: {took:?}");
        block_on(proxy.heal());
    }
}

/// The same with a broker that is really killed, also while it has just got the polls, and comes back with everything.
fn a_host_whose_broker_was_just_killed_ends_within_five_seconds() {
    let mut server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "just-killed");
    let scene = space.scene(&space.place().namesrv, "grace = \"40s\"", &work(&WAYS, ""));
    for age in [0, 1_500].map(Duration::from_millis) {
        let host = scene.start();
        sleep(age);
        server.kill_broker(0);
        let took = ended(host);
        assert!(took < MOST, "after {age:?}: {took:?}");
        block_on(server.restart_broker(0)).unwrap();
    }
    let host = scene.start();
    let ids = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(host.stop(), 0);
}

/// Tells a host to end, which it does well, and how long it took.
fn ended(host: Host) -> Duration {
    let asked = Instant::now();
    assert_eq!(host.stop(), 0);
    asked.elapsed()
}

/// Whatever happens, standard output stays empty, and at the level that a host has by default every line is its own
/// and none the client's.
fn nothing_is_on_standard_output_and_no_line_is_the_clients() {
    let space = Space::new("output");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let script = "exec \"$@\" >output.txt";
    let mut host = scene.spawn_through(&["sh", "-c", script, "sh"]);
    host.wait_ready();
    let body = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 100 }, done()] });
    let ids = [NORMAL, FIFO].map(|way| send(&space, way, &body));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    block_on(proxy.refuse(true));
    block_on(proxy.cut());
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(proxy.heal());
    host.until(Duration::from_secs(60), "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    let output = fs::read_to_string(scene.path("output.txt")).unwrap();
    assert_eq!(output, "", "standard output");
    let foreign: Vec<String> = scene
        .lines()
        .into_iter()
        .filter(|line| !line.field("target").starts_with("pumphouse"))
        .map(|line| line.text)
        .collect();
    assert_eq!(foreign, Vec::<String>::new(), "lines of others");
    assert_eq!(counts_of(&scene, &ids[0]), [0, 1]);
}
