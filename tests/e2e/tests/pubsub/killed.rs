//! The host dies without warning.

use pumphouse_e2e::pubsub::{Project, acknowledged, emulator, published};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::grpc::GrpcProxy;

use crate::common::{
    COUNTED, HOST, PAST_LEASES, PULL, STREAM, WAYS, counts, done, reject, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    a_host_killed_while_handling_loses_nothing,
    killed_after_the_copy_or_the_mark_and_before_the_acknowledgement,
}

/// C-1, C-19: killed while handling. What it had is handled by the next host with a higher count once the leases are
/// over, in all four ways.
fn a_host_killed_while_handling_loses_nothing() {
    let project = Project::new("handling");
    // The emulator pushes to the stream of a client that is gone before it notices. The proxy ends it properly.
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest = format!("concurrency = 4\n{COUNTED}");
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let mut ids = Vec::new();
    for way in WAYS {
        for key in ["a", "b"] {
            ids.extend(project.publish_keyed(way.name, key, &vec![slowly_done(300); 6]));
        }
    }
    host.until(LONG, "some calls", || {
        let (calls, done) = (host.log.calls().len(), host.log.guest_said("done").len());
        calls >= 6 && calls >= done + 3
    });
    host.kill();
    let host = scene.start();
    host.until(PAST_LEASES, "every message handled", || {
        set(&ids).is_subset(&set(&scene.guest_said("done")))
    });
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    let again = counts.values().filter(|counts| counts.len() > 1).count();
    assert!(again > 0, "nothing was in a handler");
    for (id, counts) in &counts {
        assert!(counts.is_sorted_by(|a, b| a < b), "{id} was called with the counts {counts:?}");
    }
    WAYS.iter().for_each(|way| project.assert_empty(way.name));
}

/// C-9: killed between the confirmed copy and the removal: another copy, and nothing lost.
/// S-5: killed between the mark and the acknowledgement: the redelivery is no call.
fn killed_after_the_copy_or_the_mark_and_before_the_acknowledgement() {
    let project = Project::new("between");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest =
        format!("deduplicate = {{}}\ndead_letter = {{ pubsub.topic = \"dead\" }}\n{COUNTED}");
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[PULL, STREAM], &rest));
    let host = scene.start();
    let _held = proxy.on("Acknowledge").hang();
    let ways = [PULL, STREAM];
    let rejected = ways.map(|way| project.publish(way.name, &reject()));
    let handled = ways.map(|way| project.publish_all(way.name, &vec![done(); 3])).concat();
    let copies = || proxy.requests().iter().flat_map(published).count();
    // A mark comes before its acknowledgement.
    host.until(LONG, "copies and marks, without an acknowledgement", || {
        let asked: Vec<String> = proxy.requests().iter().flat_map(acknowledged).collect();
        copies() == 2 && set(&asked).len() == handled.len() + rejected.len()
    });
    host.kill();
    block_on(proxy.heal());
    let host = scene.start();
    host.until(PAST_LEASES, "duplicates acknowledged", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) == 6.0
    });
    host.until(PAST_LEASES, "the copies again", || copies() == 4);
    let found = project.take("dead", 4);
    assert_eq!(host.stop(), 0);
    for id in &rejected {
        let ours = found.iter().filter(|copy| copy.attribute("originalMessageId") == id);
        let counts: Vec<&str> = ours.map(|copy| copy.attribute("deliveryCount")).collect();
        assert_eq!(counts, ["1", "2"]);
    }
    // What was marked is not handled again.
    assert_eq!(scene.guest_said("done").len(), handled.len());
    ways.iter().for_each(|way| project.assert_empty(way.name));
}
