//! Settlements that fail in part, that come too late, or that are asked for twice.

use pumphouse_e2e::{Depth, LONG, Queue, block_on, elasticmq, fauxqs, scene, unique};
use pumphouse_test_brokers::proxy::{Proxy, edit};
use serde_json::json;

use crate::common::{HOST, PAST_LEASES, done, set, work};

pumphouse_e2e::tests! {
    fr_34_every_entry_of_a_batch_answer_is_looked_at,
    a_stale_receipt_is_a_lost_lease_and_not_a_lost_message,
    fr_14_the_same_message_twice_in_one_receive_runs_once,
    fr_15_a_duplicate_is_acknowledged_and_not_ignored,
}

/// FR-34: entries that fail for now are tried again within their lease; one that fails for good is logged with its
/// code, counted, and handled again when its lease is over. Only what is confirmed counts as removed.
fn fr_34_every_entry_of_a_batch_answer_is_looked_at() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let name = unique("fr34");
    let source = Queue::create(&server, &name, &json!({}));
    let first = source.send_all(&done(), 8);
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, "concurrency = 10"));
    let for_now = proxy.on("DeleteMessageBatch").times(1).fail_entries(2, "InternalError", false);
    let host = scene.start();
    host.until(LONG, "all handled", || set(&scene.guest_said("done")) == set(&first));
    source.until(LONG, Depth::NONE);
    assert_eq!(for_now.count(), 1);
    assert_eq!(host.metrics().sum("pumphouse_settle_failures_total", &[]), 0.0);

    let for_good =
        proxy.on("DeleteMessageBatch").times(1).fail_entries(1, "InvalidParameterValue", true);
    let second = source.send_all(&done(), 8);
    let failed = "settlement failed; the message may be handled again";
    host.until(LONG, "the failure", || host.log.saying(failed).len() == 1);
    host.until(LONG, "all but one removed", || {
        scene.guest_said("done").len() == 16 && source.depth() == Depth { visible: 0, hidden: 1 }
    });
    assert_eq!(for_good.count(), 1);
    let line = &host.log.saying(failed)[0];
    assert!(line.field("error").contains("InvalidParameterValue"), "{line:?}");
    assert!(second.contains(&line.field("message_id").to_owned()), "{line:?}");
    assert_eq!(host.metrics().sum("pumphouse_settle_failures_total", &[]), 1.0);
    source.until(PAST_LEASES, Depth::NONE);
    let calls = scene.calls();
    assert_eq!(calls.len(), 17, "each once, and that one again: {calls:?}");
    assert_eq!((calls[16].id.as_str(), calls[16].count), (line.field("message_id"), 1));
    assert_eq!(host.log.saying(failed).len(), 1);
    assert_eq!(host.stop(), 0);
}

/// A receipt that is no longer good: the lease is said to be lost, the result is not forced, and the message comes
/// again.
fn a_stale_receipt_is_a_lost_lease_and_not_a_lost_message() {
    // Like AWS, the other server takes a removal by such a receipt for done, and does nothing.
    let server = elasticmq();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let name = unique("stale");
    let source = Queue::create(&server, &name, &json!({}));
    let ids = source.send_all(&done(), 3);
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, "concurrency = 4"));
    let stale = proxy.on("ReceiveMessage").times(1).rewrite(edit::stale_handles);
    let host = scene.start();
    host.until(LONG, "the calls", || scene.calls().len() == 3);
    assert_eq!(stale.count(), 1);
    host.until(LONG, "lost leases", || {
        host.metrics().sum("pumphouse_lease_lost_total", &[]) == 3.0
    });
    assert_eq!(source.depth(), Depth { visible: 0, hidden: 3 });
    source.until(PAST_LEASES, Depth::NONE);
    let again: Vec<String> =
        scene.calls().into_iter().filter(|call| call.count > 0).map(|call| call.id).collect();
    assert_eq!((again.len(), set(&again)), (3, set(&ids)));
    assert_eq!(host.stop(), 0);
}

/// FR-14: the same message twice in one receive, with `deduplicate`: one copy runs, the other one waits for it and
/// is then a duplicate. Without it, both run; nothing is lost either way.
fn fr_14_the_same_message_twice_in_one_receive_runs_once() {
    for (rest, calls) in [("deduplicate = {}", 3), ("", 6)] {
        let server = fauxqs();
        let proxy = block_on(Proxy::start(&server)).unwrap();
        let name = unique("twice");
        let source = Queue::create(&server, &name, &json!({}));
        let ids = source.send_all(&crate::common::slowly_done(300), 3);
        // One poll at a time: of several, another one than the first to be asked may bring the messages.
        let rest = format!("concurrency = 10\n{rest}");
        let scene = scene(&proxy.endpoint(), HOST, &work(&name, &rest));
        let twice = proxy.on("ReceiveMessage").times(1).rewrite(edit::twice);
        let host = scene.start();
        host.until(LONG, "the calls", || scene.guest_said("done").len() >= calls);
        source.until(PAST_LEASES, Depth::NONE);
        assert_eq!(twice.count(), 1);
        assert_eq!(scene.calls().len(), calls, "{rest}");
        assert_eq!(set(&scene.guest_said("done")), set(&ids));
        assert_eq!(host.stop(), 0);
    }
}

/// FR-15: a removal that fails makes the redelivery a duplicate, which is acknowledged without a call and never ends
/// at the dead-letter queue.
fn fr_15_a_duplicate_is_acknowledged_and_not_ignored() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let (name, dead) = (unique("fr15"), unique("fr15-dead"));
    let rest = format!(
        "max_deliveries = 2\ndeduplicate = {{}}\ndead_letter = {{ sqs.queue = \"{dead}\" }}"
    );
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, &rest));
    let host = scene.start();
    // As often as it is tried.
    let failed = proxy.on("DeleteMessageBatch").times(3).drop_before();
    let (source, dead) = (Queue::at(&server, &name), Queue::at(&server, &dead));
    let id = source.send(&done());
    host.until(LONG, "the failed removals", || failed.count() == 3);
    assert_eq!(source.depth(), Depth { visible: 0, hidden: 1 });
    source.until(PAST_LEASES, Depth::NONE);
    assert_eq!(scene.calls().len(), 1);
    assert_eq!(scene.guest_said("done"), [id]);
    assert_eq!(host.metrics().sum("pumphouse_dedup_hits_total", &[]), 1.0);
    assert_eq!(dead.depth(), Depth::NONE);
    assert_eq!(host.stop(), 0);
}
