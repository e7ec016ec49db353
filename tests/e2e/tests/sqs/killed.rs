//! The host dies without warning, at moments that the proxy holds still.

use std::time::Duration;

use pumphouse_e2e::{Depth, LONG, Queue, block_on, fauxqs, scene, unique, unpacked};
use pumphouse_test_brokers::proxy::Proxy;
use serde_json::{Map, Value};

use crate::common::{HOST, PAST_LEASES, WORK, done, reject, set, slowly_done, subscription, work};

pumphouse_e2e::tests! {
    a_host_killed_while_handling_loses_nothing,
    killed_after_the_copy_or_the_mark_and_before_the_removal,
}

/// C-1, C-19: killed while handling.
fn a_host_killed_while_handling_loses_nothing() {
    let server = fauxqs();
    let name = unique("handling");
    let scene = scene(&server, HOST, &work(&name, "concurrency = 8"));
    let mut host = scene.start();
    let source = Queue::at(&server, &name);
    let ids = source.send_all(&slowly_done(400), 40);
    for _ in 0..2 {
        host.until(LONG, "some calls", || host.log.calls().len() >= 10);
        let log = host.kill();
        assert!(log.calls().len() > log.guest_said("done").len(), "nothing was in a handler");
        host = scene.start();
    }
    host.until(PAST_LEASES, "every message handled", || {
        set(&scene.guest_said("done")) == set(&ids)
    });
    source.until(PAST_LEASES, Depth::NONE);
    assert_eq!(host.stop(), 0);
    for id in &ids {
        let calls = scene.calls();
        let counts: Vec<u32> =
            calls.iter().filter(|call| call.id == *id).map(|c| c.count).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{id} was called with the counts {counts:?}");
    }
}

/// C-9: killed between the confirmed copy and the removal. On FIFO the second copy is recognised.
/// S-5: killed between the mark and the acknowledgement. The redelivery is no call.
fn killed_after_the_copy_or_the_mark_and_before_the_removal() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let (copied, dead) = (unique("copied") + ".fifo", unique("copied-dead") + ".fifo");
    let marked = unique("marked");
    let text = WORK.to_owned()
        + &subscription("copied", &copied, &format!("dead_letter = {{ sqs.queue = \"{dead}\" }}"))
        + &subscription("marked", &marked, "deduplicate = {}");
    let scene = scene(&proxy.endpoint(), HOST, &text);
    let host = scene.start();
    let held = proxy.on("DeleteMessageBatch").hang();
    let (copied, marked) = (Queue::at(&server, &copied), Queue::at(&server, &marked));
    let of_group = |group: &str| {
        Map::from_iter([
            ("MessageGroupId".to_owned(), Value::from(group)),
            ("MessageDeduplicationId".to_owned(), Value::from(group)),
        ])
    };
    let rejected: Vec<String> =
        ["a", "b", "c"].iter().map(|group| copied.send_with(&reject(), &of_group(group))).collect();
    let handled = marked.send_all(&done(), 5);
    host.until(LONG, "copies and marks, unremoved", || {
        held.count() >= 2
            && proxy.count("SendMessage") == 3
            && set(&scene.guest_said("done")) == set(&handled)
    });
    // The last one's mark is stored a moment after its handler has said so.
    std::thread::sleep(Duration::from_secs(1));
    host.kill();
    block_on(proxy.heal());
    let host = scene.start();
    copied.until(PAST_LEASES, Depth::NONE);
    marked.until(PAST_LEASES, Depth::NONE);
    // The copies were sent again, and are there once.
    assert_eq!(proxy.count("SendMessage"), 6);
    let originals: Vec<String> = Queue::at(&server, &dead)
        .take(3)
        .iter()
        .map(|copy| unpacked(copy).0["originalMessageId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(set(&originals), set(&rejected));
    // What was marked is not handled again.
    assert_eq!(scene.guest_said("done").len(), 5);
    assert_eq!(host.metrics().sum("pumphouse_dedup_hits_total", &[]), 5.0);
    assert_eq!(host.stop(), 0);
}
