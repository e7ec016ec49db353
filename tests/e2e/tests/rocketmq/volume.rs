//! Many messages, with everything that happens to them.

use std::collections::BTreeSet;

use pumphouse_e2e::rocketmq::{Space, Where, group_of, message, proxy_of, started};
use pumphouse_e2e::{LONG, Scene, block_on};
use pumphouse_test_brokers::Setup;
use pumphouse_test_brokers::remoting::code;
use serde_json::{Value, json};

use crate::common::{FIFO, HOST, NORMAL, PAST_LEASES, assert_rising, done, set, slowly_done, work};

pumphouse_e2e::tests! {
    a_thousand_over_ten_groups_stay_in_order_through_deferrals_and_a_kill_of_the_broker,
    a_thousand_with_deferrals_faults_and_a_kill_of_the_host_are_all_handled,
}

const GROUPS: usize = 10;
const EACH: usize = 100;

/// The issue's own acceptance, S-6: a thousand messages over ten groups, of which many are deferred, and one SIGKILL
/// of the broker in the middle. Nothing is lost; in each group no message is handled for the first time before the
/// one before it was. What the broker had not written down is handled again, in order too.
fn a_thousand_over_ten_groups_stay_in_order_through_deferrals_and_a_kill_of_the_broker() {
    let mut server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "thousand");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&[FIFO], "concurrency = 10"));
    let host = scene.start();
    let mut groups = vec![Vec::new(); GROUPS];
    for number in 0..GROUPS * EACH {
        let group = number % GROUPS;
        let message = message(&perhaps_deferred()).of(&format!("group-{group}"));
        groups[group].push(space.send_message("fifo", message));
    }
    host.until(PAST_LEASES, "a third", || scene.guest_said("done").len() >= GROUPS * EACH / 3);
    server.kill_broker(0);
    let before = scene.guest_said("done").len();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(server.restart_broker(0)).unwrap();
    let all = groups.concat();
    host.until(PAST_LEASES, "all handled", || set(&all).is_subset(&set(&scene.guest_said("done"))));
    host.until(PAST_LEASES, "all acknowledged", || space.unsettled("fifo", "fifo-work").is_empty());
    assert_eq!(host.readiness(), 200);
    assert_eq!(host.stop(), 0);
    for (number, ids) in groups.iter().enumerate() {
        check_order(&scene, number, ids);
    }
    let again = scene.guest_said("done").len() - all.len();
    eprintln!("killed after {before} of {}; {again} were handled again", all.len());
    assert!(again <= before, "what is handled again was handled before: {again} of {before}");
}

/// A fifth is deferred once, for up to half a second.
fn perhaps_deferred() -> Value {
    if rand::random_range(0..5) > 0 {
        return done();
    }
    let defer = json!({ "do": "defer", "ms": rand::random_range(0..500) });
    json!({ "do": "sequence", "steps": [defer, done()] })
}

/// Follows a group's calls: each message begins for the first time when the one before it has been handled, and not
/// before.
fn check_order(scene: &Scene, group: usize, ids: &[String]) {
    let ours: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for line in scene.lines().iter().filter(|line| line.is_guests()) {
        let id = line.field("message_id");
        if !ours.contains(id) {
            continue;
        }
        if line.field("context") == "call" && !begun.iter().any(|one| one == id) {
            let before: &[String] = &ids[..begun.len()];
            assert_eq!(ended, before, "group {group}: {id} began before these were handled");
            begun.push(id.to_owned());
        } else if line.field("text") == "done" && !ended.iter().any(|one| one == id) {
            ended.push(id.to_owned());
        }
    }
    assert_eq!(ended, ids, "group {group}");
}

const ALL: usize = 1_000;

/// C-1, C-19: a thousand on a normal topic, of which some are deferred, some fault, some take long; acknowledgements
/// and polls are lost, connections are cut, and the host is killed meanwhile. Every one is handled, none is left.
fn a_thousand_with_deferrals_faults_and_a_kill_of_the_host_are_all_handled() {
    let server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "volume");
    let proxy = proxy_of(&server);
    let rest = "concurrency = 32\nretry = { backoff = \"1s\", max_backoff = \"2s\" }";
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&[NORMAL], rest));
    let mut host = scene.start();
    let sent: Vec<String> = (0..ALL).map(|_| space.send("normal", &body())).collect();
    host.until(PAST_LEASES, "a tenth", || scene.guest_said("done").len() >= ALL / 10);
    host.kill();
    host = scene.start();
    let group = space.name("normal-work");
    let ours = move |one: &pumphouse_test_brokers::remoting::Request| group_of(one) == group;
    let lost = [
        proxy.on(code::ACK_MESSAGE).when(ours.clone()).times(5).drop_after(),
        proxy.on(code::ACK_MESSAGE).when(ours.clone()).times(5).answer(code::SYSTEM_BUSY, "busy"),
        proxy.on(code::POP_MESSAGE).when(ours).times(2).drop_after(),
    ];
    host.until(PAST_LEASES, "a third", || scene.guest_said("done").len() >= ALL / 3);
    block_on(proxy.cut());
    host.until(PAST_LEASES, "all", || set(&sent).is_subset(&set(&scene.guest_said("done"))));
    host.until(PAST_LEASES, "all acknowledged", || {
        space.unsettled("normal", "normal-work").is_empty()
    });
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    assert_eq!(lost.each_ref().map(|rule| rule.count()), [5, 5, 2]);
    assert_rising(&scene);
    space.assert_settled("normal", false);
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
