//! Budgets and rejected copies, as another program finds them at the destination.

use std::time::Duration;

use pumphouse_e2e::{Depth, LONG, Queue, block_on, elasticmq, fauxqs, scene, unique, unpacked};
use pumphouse_test_brokers::proxy::Proxy;
use serde_json::{Map, Value, json};

use crate::common::{HOST, PAST_LEASES, reject, work};

pumphouse_e2e::tests! {
    fr_01_the_budget_runs_down_without_a_redrive_policy,
    fr_07_the_original_stays_until_the_copy_is_confirmed,
    fr_08_a_message_with_ten_attributes_is_rejected_whole,
    fr_09_fifo_copies_keep_their_group_and_come_once,
    fr_09_a_fifo_source_wants_a_fifo_destination,
    fr_10_a_loop_by_another_spelling_is_refused,
}

/// FR-01, C-4: no redrive policy, budget 3, a handler that always defers: three calls with 0, 1 and 2, then one copy
/// at the dead-letter queue and an empty source.
fn fr_01_the_budget_runs_down_without_a_redrive_policy() {
    for endpoint in [fauxqs(), elasticmq()] {
        let (name, dead) = (unique("fr01"), unique("fr01-dead"));
        let rest = format!(
            "max_deliveries = 3\nretry = {{ backoff = \"1s\", max_backoff = \"1s\" }}\ndead_letter = {{ sqs.queue = \"{dead}\" }}"
        );
        let scene = scene(&endpoint, HOST, &work(&name, &rest));
        let host = scene.start();
        let (source, dead) = (Queue::at(&endpoint, &name), Queue::at(&endpoint, &dead));
        let id = source.send(&json!({ "do": "defer" }));
        dead.until(LONG, Depth { visible: 1, hidden: 0 });
        source.until(LONG, Depth::NONE);
        assert_eq!(host.stop(), 0);
        let counts: Vec<u32> = scene.calls().iter().map(|call| call.count).collect();
        assert_eq!(counts, [0, 1, 2], "{endpoint}");
        let copy = &dead.take(1)[0];
        let (metadata, _) = unpacked(copy);
        assert_eq!(metadata["rejectionReason"], "DeliveryError");
        assert_eq!(metadata["originalMessageId"], id.as_str());
        assert_eq!(metadata["deliveryCount"], "3");
        assert_eq!(metadata["originalTopic"], name.as_str());
        assert_eq!(copy["Body"], "{\"do\":\"defer\"}");
    }
}

/// FR-07, C-13: the destination refuses, fails and hangs up; the original stays at its source until a copy is
/// confirmed, the host backs off, and nothing is lost.
fn fr_07_the_original_stays_until_the_copy_is_confirmed() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let (name, dead) = (unique("fr07"), unique("fr07-dead"));
    let rest = format!(
        "retry = {{ backoff = \"1s\", max_backoff = \"2s\", jitter = \"none\" }}\ndead_letter = {{ sqs.queue = \"{dead}\" }}"
    );
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, &rest));
    let host = scene.start();
    let refused = proxy.on("SendMessage").times(1).error(400, "AccessDenied", "not yours");
    let failed = proxy.on("SendMessage").times(1).error(500, "InternalFailure", "broken");
    let dropped = proxy.on("SendMessage").times(1).drop_before();
    let (source, dead) = (Queue::at(&server, &name), Queue::at(&server, &dead));
    let id = source.send(&reject());
    host.until(LONG, "three failed copies", || {
        let depth = source.depth();
        assert!(dropped.count() > 0 || depth.visible + depth.hidden == 1, "it left: {depth:?}");
        dropped.count() == 1
    });
    assert_eq!((refused.count(), failed.count()), (1, 1));
    dead.until(LONG, Depth { visible: 1, hidden: 0 });
    source.until(LONG, Depth::NONE);
    let metrics = host.metrics();
    assert_eq!(metrics.sum("pumphouse_dead_letter_publish_failures_total", &[]), 3.0);
    assert_eq!(metrics.sum("pumphouse_dead_letter_messages_total", &[]), 1.0);
    // C-14: each turn calls the handler again and logs an error that names the message.
    let errors = host.log.saying("rejected message could not be routed and stays at its source");
    assert_eq!(errors.len(), 3);
    assert!(
        errors.iter().all(|line| line.field("message_id") == id && line.field("level") == "ERROR")
    );
    let calls = scene.calls();
    assert_eq!(calls.len(), 4);
    // 1 s, 2 s, 2 s: not a spin.
    assert!(calls[3].since(&calls[0]) >= Duration::from_secs(4), "{calls:?}");
    assert_eq!(host.stop(), 0);
    let (metadata, _) = unpacked(&dead.take(1)[0]);
    assert_eq!(metadata["rejectionMessage"], "not wanted");
}

/// FR-08, C-11: 8, 9 and 10 attributes of its own, at a server that takes ten; all survive.
fn fr_08_a_message_with_ten_attributes_is_rejected_whole() {
    let server = elasticmq();
    let (name, dead) = (unique("fr08"), unique("fr08-dead"));
    let rest = format!("dead_letter = {{ sqs.queue = \"{dead}\" }}");
    let scene = scene(&server, HOST, &work(&name, &rest));
    let host = scene.start();
    let (source, dead) = (Queue::at(&server, &name), Queue::at(&server, &dead));
    for size in [8, 9, 10] {
        let attributes: Map<String, Value> = (0..size)
            .map(|n| {
                (
                    format!("own-{n}"),
                    json!({ "DataType": "String", "StringValue": format!("{size}/{n}") }),
                )
            })
            .collect();
        let more = Map::from_iter([("MessageAttributes".to_owned(), attributes.into())]);
        let _ = source.send_with(&reject(), &more);
    }
    let mut copies = dead.take(3);
    source.until(LONG, Depth::NONE);
    copies.sort_by_key(|copy| unpacked(copy).1.len());
    for (copy, size) in copies.iter().zip([8, 9, 10]) {
        assert!(copy["MessageAttributes"].as_object().unwrap().len() <= 10, "{copy:#}");
        let (metadata, own) = unpacked(copy);
        assert_eq!(own.len(), size, "{copy:#}");
        for n in 0..size {
            assert_eq!(own[&format!("own-{n}")], format!("{size}/{n}"), "{copy:#}");
        }
        assert_eq!(metadata["rejectionReason"], "DeliveryError");
    }
    assert_eq!(host.stop(), 0);
}

fn fifo(group: &str, deduplication: &str) -> Map<String, Value> {
    Map::from_iter([
        ("MessageGroupId".to_owned(), group.into()),
        ("MessageDeduplicationId".to_owned(), deduplication.into()),
    ])
}

/// FR-09: a rejected copy of a FIFO message keeps its group and has a deduplication id of its own: two messages with
/// equal bodies are two copies, one move that was sent twice is one.
fn fr_09_fifo_copies_keep_their_group_and_come_once() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let (name, dead) = (unique("fr09") + ".fifo", unique("fr09-dead") + ".fifo");
    let rest = format!(
        "retry = {{ backoff = \"1s\", max_backoff = \"1s\" }}\ndead_letter = {{ sqs.queue = \"{dead}\" }}"
    );
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, &rest));
    let host = scene.start();
    // The first copy is there, and its confirmation is lost: the same move is sent again.
    let lost = proxy.on("SendMessage").times(1).drop_after();
    let (source, dead) = (Queue::at(&server, &name), Queue::at(&server, &dead));
    let first = source.send_with(&reject(), &fifo("group-a", "one"));
    let second = source.send_with(&reject(), &fifo("group-b", "two"));
    source.until(PAST_LEASES, Depth::NONE);
    assert_eq!(lost.count(), 1);
    assert_eq!(proxy.count("SendMessage"), 3);
    assert_eq!(host.stop(), 0);
    let mut copies: Vec<(String, String)> = dead
        .take(2)
        .iter()
        .map(|copy| {
            let original = unpacked(copy).0["originalMessageId"].as_str().unwrap().to_owned();
            (original, copy["Attributes"]["MessageGroupId"].as_str().unwrap().to_owned())
        })
        .collect();
    copies.sort();
    let mut wanted = vec![(first, "group-a".to_owned()), (second, "group-b".to_owned())];
    wanted.sort();
    assert_eq!(copies, wanted);
}

/// FR-09: a FIFO source with a destination that is none is refused at the start.
fn fr_09_a_fifo_source_wants_a_fifo_destination() {
    let scene =
        scene(&fauxqs(), HOST, &work("orders.fifo", "dead_letter = { sqs.queue = \"dead\" }"));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stderr.contains(".fifo") && ran.stderr.contains("dead_letter"), "{ran:#?}");
}

/// FR-10: a loop by another spelling, name and ARN, is refused.
fn fr_10_a_loop_by_another_spelling_is_refused() {
    let arn = "arn:aws:sqs:us-east-1:000000000000:orders";
    let text = work("orders", &format!("dead_letter = {{ sqs.queue = \"{arn}\" }}"));
    let scene = scene(&fauxqs(), HOST, &text);
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stderr.contains("F-5") && ran.stderr.contains("work"), "{ran:#?}");
}
