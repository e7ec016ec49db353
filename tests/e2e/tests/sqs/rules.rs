//! Counting, ordering and leases, seen from outside the process.

use std::collections::BTreeMap;
use std::time::Duration;

use pumphouse_e2e::{
    Depth, LONG, Queue, Scene, block_on, elasticmq, fauxqs, scene, unique, unpacked,
};
use pumphouse_test_brokers::proxy::Proxy;
use serde_json::{Map, Value, json};

use crate::common::{HOST, PAST_LEASES, WORK, done, set, slowly_done, subscription, work};

pumphouse_e2e::tests! {
    fr_03_the_budget_is_one_number,
    fr_06_unreadable_and_undeliverable_go_to_different_places,
    fr_11_a_deferred_head_holds_its_group_and_no_other,
    fr_32_a_delay_beyond_the_brokers_limit_is_shortened,
    fr_35_a_lease_outlasts_a_slow_handler,
}

fn counts(scene: &Scene) -> BTreeMap<String, Vec<u32>> {
    let mut counts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for call in scene.calls() {
        counts.entry(call.id).or_default().push(call.count);
    }
    counts
}

/// FR-03, C-4: budgets 1, 2 and 3 are as many calls at most, and here, where no receive is lost, exactly.
fn fr_03_the_budget_is_one_number() {
    let server = fauxqs();
    let dead = unique("fr03-dead");
    let queues: Vec<(usize, String)> =
        (1..=3).map(|budget| (budget, unique(&format!("fr03-{budget}")))).collect();
    let text: String = queues
        .iter()
        .map(|(budget, queue)| {
            let rest = format!(
                "max_deliveries = {budget}\nretry = {{ backoff = \"1s\", max_backoff = \"1s\" }}\ndead_letter = {{ sqs.queue = \"{dead}\" }}"
            );
            subscription(&format!("b{budget}"), queue, &rest)
        })
        .collect();
    let scene = scene(&server, HOST, &(WORK.to_owned() + &text));
    let host = scene.start();
    let defer = json!({ "do": "defer" });
    let ids: Vec<String> =
        queues.iter().map(|(_, queue)| Queue::at(&server, queue).send(&defer)).collect();
    let copies = Queue::at(&server, &dead).take(3);
    queues.iter().for_each(|(_, queue)| Queue::at(&server, queue).until(LONG, Depth::NONE));
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (id, (budget, _)) in ids.iter().zip(&queues) {
        assert_eq!(counts[id].len(), *budget, "{counts:?}");
        assert!(copies.iter().any(|copy| unpacked(copy).0["originalMessageId"] == id.as_str()));
    }
}

fn enveloped(body: &Value) -> Value {
    json!({
        "Type": "Notification",
        "MessageId": "d3b07384-d9a0-4c9b-8a0e-6f4f2b1c0000",
        "TopicArn": "arn:aws:sns:us-east-1:000000000000:topic",
        "Message": body.to_string(),
        "Timestamp": "2026-01-01T00:00:00.000Z",
    })
}

/// FR-06, C-10: what can't be decoded and what the handler calls invalid go to one place, a used-up budget and a
/// delivery error to the other; none is just acknowledged.
fn fr_06_unreadable_and_undeliverable_go_to_different_places() {
    let server = fauxqs();
    let (name, dead, invalid) = (unique("fr06"), unique("fr06-dead"), unique("fr06-invalid"));
    let rest = format!(
        "max_deliveries = 1\nretry = {{ backoff = \"1s\" }}\ndead_letter = {{ sqs.queue = \"{dead}\" }}\ninvalid_message = {{ sqs.queue = \"{invalid}\" }}"
    );
    let text = work(&name, &rest).replace(
        &format!("source = {{ sqs.queue = \"{name}\" }}"),
        &format!("source = {{ sqs.queue = \"{name}\", sqs.envelope = \"enveloped\" }}"),
    );
    assert!(text.contains("enveloped"));
    let scene = scene(&server, HOST, &text);
    let host = scene.start();
    let source = Queue::at(&server, &name);
    let reject = |reason| enveloped(&json!({ "do": "reject", "reason": reason, "text": "no" }));
    let to_invalid = [source.send(&json!("no envelope")), source.send(&reject("unacceptable"))];
    let to_dead = [
        source.send(&enveloped(&json!({ "do": "defer" }))),
        source.send(&reject("delivery-error")),
    ];
    source.until(LONG, Depth::NONE);
    for (queue, reason, wanted) in
        [(invalid, "Unacceptable", to_invalid), (dead, "DeliveryError", to_dead)]
    {
        let copies = Queue::at(&server, &queue).take(2);
        let metadata = copies.iter().map(|copy| unpacked(copy).0);
        let ids = metadata.map(|metadata| {
            assert_eq!(metadata["rejectionReason"], reason, "{metadata:#}");
            metadata["originalMessageId"].as_str().unwrap().to_owned()
        });
        assert_eq!(set(&ids.collect::<Vec<_>>()), set(&wanted));
    }
    let acks = host.metrics().sum("pumphouse_deliveries_total", &[("outcome", "ack")]);
    assert_eq!(acks, 0.0);
    assert_eq!(scene.calls().len(), 3, "what can't be decoded is no call");
    assert_eq!(host.stop(), 0);
}

/// FR-11, S-6: A1 defers; A2 and A3 wait behind it without losing a delivery, B goes on. The server, like AWS, hands
/// out several of a group in one receive where it is asked for several.
fn fr_11_a_deferred_head_holds_its_group_and_no_other() {
    let server = elasticmq();
    let name = unique("fr11") + ".fifo";
    let source = Queue::create(&server, &name, &json!({ "FifoQueue": "true" }));
    let send = |group: &str, number: usize, body: &Value| {
        let more = Map::from_iter([
            ("MessageGroupId".to_owned(), Value::from(group)),
            ("MessageDeduplicationId".to_owned(), format!("{group}{number}").into()),
        ]);
        source.send_with(body, &more)
    };
    let head = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 4_000 }, done()] });
    let a = [send("a", 1, &head), send("a", 2, &done()), send("a", 3, &done())];
    let b = [send("b", 1, &slowly_done(50)), send("b", 2, &done())];
    let scene = scene(&server, HOST, &work(&name, "max_deliveries = 3"));
    let host = scene.start();
    host.until(LONG, "all handled", || scene.guest_said("done").len() == 5);
    source.until(LONG, Depth::NONE);
    assert_eq!(host.stop(), 0);
    let ended = scene.guest_said("done");
    let of = |ids: &[String]| {
        ended.iter().filter(|id| ids.contains(id)).cloned().collect::<Vec<String>>()
    };
    assert_eq!((of(&a), of(&b)), (a.to_vec(), b.to_vec()), "each group in its order");
    assert_eq!(ended[..2], b, "the other group did not wait");
    let counts = counts(&scene);
    assert_eq!(counts[&a[0]], [0, 1]);
    assert!(a[1..].iter().chain(&b).all(|id| counts[id] == [0]), "{counts:?}");
}

/// FR-32, S-2: twelve hours from the receive are what there is; a handler that took 3 s gets 3 s less, counted and
/// logged once.
fn fr_32_a_delay_beyond_the_brokers_limit_is_shortened() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let name = unique("fr32");
    let text = work(&name, "").replace("deadline = \"2s\"", "deadline = \"20s\"");
    let scene = scene(&proxy.endpoint(), HOST, &text);
    let host = scene.start();
    let source = Queue::at(&server, &name);
    let defer = json!({ "do": "defer", "ms": 43_200_000 });
    let ids = source.send_all(&json!({ "do": "sleep", "ms": 3_000, "then": defer }), 2);
    host.until(LONG, "two shortened delays", || {
        host.metrics().sum("pumphouse_delays_shortened_total", &[]) == 2.0
    });
    source.until(LONG, Depth { visible: 0, hidden: 2 });
    host.until(LONG, "the releases", || proxy.count("ChangeMessageVisibilityBatch") > 0);
    let asked: Vec<u64> = proxy
        .requests()
        .iter()
        .filter(|request| request.operation == "ChangeMessageVisibilityBatch")
        .flat_map(|request| request.json()["Entries"].as_array().cloned().unwrap_or_default())
        .map(|entry| entry["VisibilityTimeout"].as_u64().unwrap())
        .collect();
    assert_eq!(asked.len(), ids.len(), "{asked:?}");
    assert!(asked.iter().all(|seconds| (43_100..=43_197).contains(seconds)), "{asked:?}");
    let said = "a handler asked for a longer delay than the broker gives; it is shortened";
    assert_eq!(host.log.saying(said).len(), 1);
    assert_eq!(host.metrics().sum("pumphouse_settle_failures_total", &[]), 0.0);
    assert_eq!(host.stop(), 0);
}

/// FR-35: a handler slower than the queue's own visibility, one at a time, and more messages than one lease could
/// hold: each is handled once.
fn fr_35_a_lease_outlasts_a_slow_handler() {
    let server = fauxqs();
    let name = unique("fr35");
    let source = Queue::create(&server, &name, &json!({ "VisibilityTimeout": "2" }));
    let ids = source.send_all(&slowly_done(5_000), 6);
    let text =
        work(&name, "dispatch = \"sequential\"").replace("deadline = \"2s\"", "deadline = \"8s\"");
    let scene = scene(&server, HOST, &text);
    let host = scene.start();
    // 30 s of work, under leases of 27 s that begin when there is a handler.
    host.until(PAST_LEASES, "all handled", || set(&scene.guest_said("done")) == set(&ids));
    source.until(Duration::from_secs(10), Depth::NONE);
    let calls = scene.calls();
    assert_eq!(calls.len(), ids.len(), "{calls:?}");
    assert!(calls.iter().all(|call| call.count == 0), "{calls:?}");
    assert_eq!(host.metrics().sum("pumphouse_lease_lost_total", &[]), 0.0);
    assert_eq!(host.stop(), 0);
}
