//! The host dies without warning.

use pumphouse_e2e::LONG;
use pumphouse_e2e::block_on;
use pumphouse_e2e::rocketmq::{Space, is_publish, message, proxy, topic_of};
use pumphouse_test_brokers::remoting::code;

use crate::common::{
    DEAD, HOST, PAST_LEASES, WAYS, about, assert_rising, counts, done, reject, send_many, set,
    slowly_done, work,
};

pumphouse_e2e::tests! {
    a_host_killed_while_handling_loses_nothing,
    killed_after_the_copy_or_the_mark_and_before_the_acknowledgement,
}

/// C-1, C-19: killed while handling. What it had is handled by the next host with a higher count once the leases are
/// over, on both kinds of topic.
fn a_host_killed_while_handling_loses_nothing() {
    let space = Space::new("handling");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, "concurrency = 4"));
    let host = scene.start();
    let ids = WAYS.map(|way| send_many(&space, way, &slowly_done(400), 16)).concat();
    host.until(LONG, "some calls", || {
        let (calls, done) = (host.log.calls().len(), host.log.guest_said("done").len());
        calls >= 6 && calls >= done + 3
    });
    let log = host.kill();
    let ended = set(&log.guest_said("done"));
    let cut: Vec<String> =
        log.calls().into_iter().map(|call| call.id).filter(|id| !ended.contains(id)).collect();
    assert!(!cut.is_empty(), "nothing was in a handler");
    let host = scene.start();
    host.until(PAST_LEASES, "every message handled", || {
        set(&ids).is_subset(&set(&scene.guest_said("done")))
    });
    host.until(LONG, "all acknowledged", || {
        WAYS.iter().all(|way| space.unsettled(way.name, &format!("{}-work", way.name)).is_empty())
    });
    assert_eq!(host.stop(), 0);
    assert_rising(&scene);
    let counts = counts(&scene);
    for id in &cut {
        assert_eq!(counts[id], [0, 1], "{id} was in a handler");
    }
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// C-9: killed between the confirmed copy and the acknowledgement: another copy, and nothing lost.
/// S-5: killed between the mark and the acknowledgement: the redelivery is no call.
fn killed_after_the_copy_or_the_mark_and_before_the_acknowledgement() {
    let space = Space::new("between");
    let proxy = proxy();
    let rest = format!("deduplicate = {{}}\n{DEAD}");
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let held = WAYS.map(|way| proxy.on(code::ACK_MESSAGE).when(about(&space, way.name)).hang());
    let rejected = WAYS.map(|way| space.send_message(way.name, message(&reject()).of("h")));
    // Of groups that do not wait behind the rejected one.
    let handled = WAYS.map(|way| send_many(&space, way, &done(), 3)).concat();
    let copies = || {
        let is =
            |topic: &str| WAYS.iter().any(|way| space.name(&format!("dead-{}", way.name)) == topic);
        proxy.requests().iter().filter(|one| is_publish(one) && is(topic_of(one))).count()
    };
    // A mark comes before its acknowledgement.
    host.until(LONG, "copies and marks, without an acknowledgement", || {
        let asked: u64 = held.iter().map(|rule| rule.count()).sum();
        copies() == 2 && asked >= 8
    });
    host.kill();
    block_on(proxy.heal());
    let host = scene.start();
    host.until(PAST_LEASES, "duplicates acknowledged", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) >= 6.0
    });
    host.until(PAST_LEASES, "the copies again", || copies() == 4);
    host.until(PAST_LEASES, "all acknowledged", || {
        WAYS.iter().all(|way| space.unsettled(way.name, &format!("{}-work", way.name)).is_empty())
    });
    assert_eq!(host.stop(), 0);
    for (way, id) in WAYS.iter().zip(&rejected) {
        let found = space.copies(LONG, &format!("dead-{}", way.name), 2);
        let ours = found.iter().filter(|copy| copy.property("originalMessageId") == id);
        let mut counts: Vec<&str> = ours.map(|copy| copy.property("deliveryCount")).collect();
        counts.sort_unstable();
        assert_eq!(counts, ["1", "2"], "{}", way.name);
    }
    // What was marked is not handled again.
    let mut ended = scene.guest_said("done");
    ended.retain(|id| handled.contains(id));
    assert_eq!(ended.len(), handled.len(), "{ended:?}");
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}
