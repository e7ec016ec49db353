//! Rejected copies, as another program finds them at the destination, and when the original goes.

use std::time::{Duration, Instant};

use pumphouse_e2e::rocketmq::{Space, Stored, is_publish, message, proxy, topic_of};
use pumphouse_e2e::{LONG, Scene};
use pumphouse_test_brokers::remoting::{Request, code};
use serde_json::{Value, json};

use crate::common::{
    HOST, PAST_LEASES, WAYS, WORK, about, counts_of, done, reject, send, send_many, set,
    subscription, work,
};

pumphouse_e2e::tests! {
    fr_05_a_rejection_is_a_confirmed_copy_and_then_an_acknowledgement,
    fr_06_unreadable_and_undeliverable_go_to_different_places,
    fr_06_a_body_that_can_not_be_decoded_is_unacceptable,
    fr_07_the_original_stays_until_the_copy_is_confirmed,
    fr_09_copies_of_a_fifo_topic_keep_their_group_and_their_order,
    fr_10_a_loop_is_refused_and_a_copy_is_bounded_where_it_can_not_be_seen,
    what_can_not_be_a_property_is_packed_and_unpacked_again,
}

const BOTH: &str = "dead_letter = { rocketmq.topic = \"{space}-dead-{way}\" }\ninvalid_message = { rocketmq.topic = \"{space}-invalid-{way}\" }";

/// How long a publish takes, so that whoever does not wait for it is seen.
const PUBLISHING: Duration = Duration::from_millis(700);

/// What the broker adds to a message that it gives, or that only says something of one delivery.
const NOT_ON_COPIES: [&str; 8] = [
    "POP_CK",
    "1ST_POP_TIME",
    "RECONSUME_TIME",
    "MAX_RECONSUME_TIMES",
    "REAL_TOPIC",
    "RETRY_TOPIC",
    "ORIGIN_MESSAGE_ID",
    "googclient_deliveryattempt",
];

/// FR-05, C-9, C-10, C-11: two kinds of topic, two reasons: each message is found once at the destination of its
/// reason, with its metadata, body, properties, keys, tag and group, and is acknowledged only after the copy was
/// confirmed.
fn fr_05_a_rejection_is_a_confirmed_copy_and_then_an_acknowledgement() {
    let space = Space::new("fr05");
    let proxy = proxy();
    let slow = proxy.on(code::ANY).when(is_publish).delay_answer(PUBLISHING);
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, BOTH));
    let host = scene.start();
    let mut sent = Vec::new();
    for way in WAYS {
        for (reason, to) in [("unacceptable", "invalid"), ("delivery-error", "dead")] {
            let body =
                json!({ "do": "reject", "reason": reason, "text": "not wanted", "way": way.name });
            let original = message(&body)
                .of("customer-7")
                .with("type", "order")
                .with("colour", "blau – grün")
                .with("KEYS", "A-1 A-2")
                .with("TAGS", "red")
                .with("googclient_deliveryattempt", "7");
            let id = space.send_message(way.name, original);
            sent.push((way, reason, format!("{to}-{}", way.name), body, id));
        }
    }
    for (way, reason, to, body, id) in &sent {
        let copy = &space.copies(LONG, to, 1)[0];
        let wanted = if *reason == "unacceptable" { "Unacceptable" } else { "DeliveryError" };
        assert_eq!(copy.property("rejectionReason"), wanted);
        assert_eq!(copy.property("rejectionMessage"), "not wanted");
        assert_eq!(copy.property("originalTopic"), space.name(way.name));
        assert_eq!(copy.property("originalMessageType"), "order");
        assert_eq!(copy.property("originalMessageId"), id);
        assert_eq!(copy.property("deliveryCount"), "1");
        assert!(copy.property("rejectionTimestamp").starts_with("20"), "{copy:#?}");
        assert!(copy.property("rejectedBy").starts_with(way.name), "{copy:#?}");
        assert_eq!(
            (copy.body.as_str(), copy.group.as_str()),
            (body.to_string().as_str(), "customer-7")
        );
        assert_eq!(copy.property("colour"), "blau – grün");
        assert_eq!(copy.property("type"), "order");
        assert_eq!((copy.property("KEYS"), copy.property("TAGS")), ("A-1 A-2", "red"));
        assert_ne!(copy.id, *id, "a copy is a message of its own");
        for name in NOT_ON_COPIES {
            assert_eq!(copy.properties.get(name), None, "{name}: {copy:#?}");
        }
    }
    host.until(LONG, "all removed", || {
        host.metrics().sum("pumphouse_dead_letter_messages_total", &[]) == 4.0
    });
    assert_eq!(host.stop(), 0);
    assert_eq!(slow.count(), u64::try_from(sent.len()).unwrap(), "one publish each");
    let requests = proxy.requests();
    for way in &WAYS {
        let ours = about(&space, way.name);
        let destinations = sent.iter().filter(|(of, ..)| of.name == way.name);
        let mut copied: Vec<Instant> = destinations
            .map(|(_, _, to, ..)| {
                let to = space.name(to);
                let copied = when(&requests, |one| is_publish(one) && topic_of(one) == to);
                let [copied] = copied[..] else { panic!("{to}: copies {copied:?}") };
                copied
            })
            .collect();
        let mut removed = when(&requests, |one| one.code == code::ACK_MESSAGE && ours(one));
        assert_eq!(removed.len(), copied.len(), "{}: {removed:?}", way.name);
        // A receipt does not say whose it is: the first to go can't be earlier than the first copy allows, and so on.
        copied.sort();
        removed.sort();
        for (copied, removed) in copied.iter().zip(&removed) {
            let waited = removed.checked_duration_since(*copied);
            let name = way.name;
            assert!(
                waited >= Some(PUBLISHING),
                "{name}: acknowledged {waited:?} after the publish"
            );
        }
    }
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

fn when(requests: &[Request], is: impl Fn(&Request) -> bool) -> Vec<Instant> {
    requests.iter().filter(|one| is(one)).map(|one| one.at).collect()
}

fn originals(copies: &[Stored]) -> Vec<String> {
    copies.iter().map(|copy| copy.property("originalMessageId").to_owned()).collect()
}

/// FR-06, C-10: what the handler calls invalid goes to one place, a used-up budget and a delivery error to the other;
/// a body that is no text is a body. Where only a dead-letter topic is configured, all go there.
fn fr_06_unreadable_and_undeliverable_go_to_different_places() {
    let space = Space::new("fr06");
    let rest = format!("max_deliveries = 1\n{BOTH}");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let rejecting = |reason| json!({ "do": "reject", "reason": reason, "text": "no" });
    for way in WAYS {
        let to_invalid = [send(&space, way, &rejecting("unacceptable"))];
        let to_dead = [
            send(&space, way, &json!({ "do": "defer" })),
            send(&space, way, &rejecting("delivery-error")),
            send(&space, way, &rejecting("none")),
        ];
        let mut bytes = message(&json!("")).of("a");
        bytes.body = vec![0, 159, 146, 150];
        let binary = space.send_message(way.name, bytes);
        let invalid = space.copies(LONG, &format!("invalid-{}", way.name), 1);
        let dead = space.copies(LONG, &format!("dead-{}", way.name), 3);
        assert_eq!(set(&originals(&invalid)), set(&to_invalid));
        assert_eq!(set(&originals(&dead)), set(&to_dead));
        host.until(LONG, "four bytes", || counts_of(&scene, &binary) == [0]);
    }
    host.until(LONG, "two acknowledged", || {
        host.metrics().sum("pumphouse_deliveries_total", &[("outcome", "ack")]) == 2.0
    });
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-06, C-15: a body that says that it is compressed and can't be undone goes to the invalid ones as it was received,
/// with its properties, without a call; nothing behind it, in its own queue and group, is held up or lost.
fn fr_06_a_body_that_can_not_be_decoded_is_unacceptable() {
    let space = Space::new("undecodable");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, BOTH));
    let host = scene.start();
    for way in WAYS {
        let broken = message(&json!("not compressed")).of("a").with("colour", "blue").zlib();
        let broken = space.send_message(way.name, broken);
        let behind = send_many(&space, way, &done(), 9);
        let copy = &space.copies(LONG, &format!("invalid-{}", way.name), 1)[0];
        assert_eq!(copy.property("originalMessageId"), broken);
        assert_eq!(copy.property("rejectionReason"), "Unacceptable");
        assert!(copy.property("rejectionMessage").contains("could not be decoded"), "{copy:#?}");
        assert_eq!((copy.body.as_str(), copy.compressed), ("not compressed", false));
        assert_eq!((copy.property("colour"), copy.group.as_str()), ("blue", "a"));
        host.until(LONG, "those behind", || {
            set(&behind).is_subset(&set(&scene.guest_said("done")))
        });
        assert_eq!(counts_of(&scene, &broken), Vec::<u32>::new(), "{}: no call", way.name);
    }
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| {
        assert!(space.stored(&format!("dead-{}", way.name)).is_empty());
        space.assert_settled(way.name, way.ordered);
    });
}

/// FR-07, C-13: the destination is missing, is denied, refuses, and then does not answer in time; the original is not
/// acknowledged, comes back after the backoff, and goes when a copy is confirmed.
fn fr_07_the_original_stays_until_the_copy_is_confirmed() {
    let space = Space::new("fr07");
    let proxy = proxy();
    let rest =
        format!("retry = {{ backoff = \"1s\", max_backoff = \"1s\", jitter = \"none\" }}\n{BOTH}");
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let sent = WAYS.map(|way| {
        let to = space.name(&format!("dead-{}", way.name));
        let on = || {
            let to = to.clone();
            proxy.on(code::ANY).when(move |one| is_publish(one) && topic_of(one) == to).times(1)
        };
        let rules = [
            on().answer(code::TOPIC_NOT_EXIST, "topic not exist"),
            on().answer(code::NO_PERMISSION, "not yours"),
            on().answer(code::MESSAGE_ILLEGAL, "not so"),
        ];
        let original = message(&reject()).of("customer-7");
        (way, rules, space.send_message(way.name, original))
    });
    for (way, rules, id) in &sent {
        let copy = &space.copies(PAST_LEASES, &format!("dead-{}", way.name), 1)[0];
        assert_eq!(copy.property("originalMessageId"), id);
        assert_eq!(copy.property("rejectionMessage"), "not wanted");
        assert_eq!(copy.group, "customer-7");
        assert_eq!(rules.each_ref().map(|rule| rule.count()), [1, 1, 1], "{}", way.name);
    }
    host.until(LONG, "both removed", || {
        host.metrics().sum("pumphouse_dead_letter_messages_total", &[]) == 2.0
    });
    let metrics = host.metrics();
    assert_eq!(host.stop(), 0);
    for (way, _, id) in &sent {
        let labels = [("subscription", way.name)];
        assert_eq!(metrics.sum("pumphouse_dead_letter_publish_failures_total", &labels), 3.0);
        // C-14: each turn calls the handler again and logs an error that names the message.
        assert_eq!(errors(&scene, id), 3, "{}", way.name);
        assert_eq!(counts_of(&scene, id), [0, 1, 2, 3], "{}", way.name);
        let calls: Vec<_> = scene.calls().into_iter().filter(|call| call.id == *id).collect();
        // 1 s each: not a spin.
        assert!(calls[3].since(&calls[0]) >= Duration::from_millis(2_900), "{calls:?}");
        space.assert_settled(way.name, way.ordered);
    }
}

fn errors(scene: &Scene, id: &str) -> usize {
    let said = "rejected message could not be routed and stays at its source";
    let lines = scene.lines();
    let ours =
        lines.iter().filter(|line| line.field("message") == said && line.field("message_id") == id);
    ours.filter(|line| line.field("level") == "ERROR").count()
}

/// FR-09: rejected copies of a FIFO topic are of their message's group, in the same queue as the Java client would
/// choose, and in the order in which they were rejected. Two messages with equal bodies are two copies.
fn fr_09_copies_of_a_fifo_topic_keep_their_group_and_their_order() {
    let space = Space::new("fr09");
    let way = crate::common::FIFO;
    let scene = space.scene(&space.place().namesrv, HOST, &work(&[way], BOTH));
    let host = scene.start();
    let groups = ["a", "b", "customer-7"];
    let sent = groups.map(|group| space.send_group("fifo", group, &vec![reject(); 4]));
    let copies = space.copies(LONG, "dead-fifo", 12);
    for (group, ids) in groups.iter().zip(&sent) {
        let ours: Vec<Stored> =
            copies.iter().filter(|copy| copy.group == *group).cloned().collect();
        assert_eq!(originals(&ours), *ids, "{group}");
        let queue = pumphouse_e2e::rocketmq::java_hash(group).unsigned_abs() % 8;
        assert!(ours.iter().all(|copy| copy.queue == queue), "{group}: {ours:#?}");
    }
    host.until(LONG, "all removed", || {
        host.metrics().sum("pumphouse_dead_letter_messages_total", &[]) == 12.0
    });
    assert_eq!(host.stop(), 0);
    space.assert_settled("fifo", true);
}

/// FR-10: a loop is refused at the start, and named. One that can't be seen there, since another configuration reads
/// the destination and rejects into the source, ends at the first deferral of a copy that is known as one (C-7).
fn fr_10_a_loop_is_refused_and_a_copy_is_bounded_where_it_can_not_be_seen() {
    let space = Space::new("fr10");
    let circle = "dead_letter = { rocketmq.topic = \"{space}-normal\" }";
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS[..1], circle));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stderr.contains("F-5") && ran.stderr.contains("normal"), "{ran:#?}");

    let text = WORK.to_owned()
        + &subscription("there", WAYS[0], "dead_letter = { rocketmq.topic = \"{space}-back\" }");
    let there = space.scene(&space.place().namesrv, HOST, &text);
    let rest =
        "max_deliveries = 2\nrejected = true\ndead_letter = { rocketmq.topic = \"{space}-end\" }";
    let text = WORK.to_owned() + &subscription("back", WAYS[0], rest);
    let back = space.scene(&space.place().namesrv, HOST, &text);
    let hosts = [there.start(), back.start()];
    let body = json!({ "do": "sequence", "steps": [reject(), { "do": "defer" }] });
    let id = space.send("there", &body);
    let copy = &space.copies(LONG, "end", 1)[0];
    assert_eq!(copy.property("deliveryCount"), "2", "the stamped one goes on: {copy:#?}");
    hosts.into_iter().for_each(|host| assert_eq!(host.stop(), 0));
    assert_eq!(counts_of(&there, &id), [0]);
    // The copy presents what was stamped in it.
    assert_eq!(back.calls().iter().map(|call| call.count).collect::<Vec<_>>(), [1]);
    space.assert_settled("there", false);
    space.assert_settled("back", false);
}

/// C-11, FR-05: headers that can't be properties here (names of RocketMQ's, its separators, an empty value) come from
/// another broker. The copy has them packed; a source that knows copies shows them as they were. A counter travels
/// nowhere (C-6).
fn what_can_not_be_a_property_is_packed_and_unpacked_again() {
    let space = Space::new("packed");
    let text = WORK.to_owned()
        + "\n[subscriptions.work]\nsource = { embedded.queue = \"work\" }\nhandler = \"acme/work\"\ndead_letter = { rocketmq.topic = \"{space}-copies\" }\n"
        + &subscription("copies", WAYS[0], "rejected = true");
    let scene = space.scene(&space.place().namesrv, HOST, &text);
    let host = scene.start();
    let strange = [
        ("CORRELATION_ID", "7"),
        ("TTL", "5"),
        ("empty", ""),
        ("separator", "a\u{1}b\u{2}c"),
        ("pumphouse", "{}"),
        ("plain", "as it is"),
        ("KEYS", "k1 k2"),
        ("POP_CK", "0 1 2"),
        ("WAIT", "false"),
        ("UNIQ_KEY", "another's"),
        ("__SHARDINGKEY", "another's"),
        ("DELAY", "18"),
        ("TIMER_DELAY_SEC", "3600"),
        ("__RMQ.TRANSIENT.x", "1"),
    ];
    let counter = ("RECONSUME_TIME", "9");
    let headers: Vec<String> = strange
        .iter()
        .chain([&counter])
        .flat_map(|(name, value)| ["--header".to_owned(), format!("{name}={value}")])
        .collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = json!({ "do": "sequence", "steps": [reject(), { "do": "report", "then": done() }] });
    let id = scene.publish_keyed("work", &headers, &body);
    let copy = &space.copies(LONG, "copies", 1)[0];
    assert_eq!(copy.property("originalMessageId"), id);
    assert_eq!((copy.property("plain"), copy.property("KEYS")), ("as it is", "k1 k2"));
    for packed in ["CORRELATION_ID", "POP_CK", "UNIQ_KEY", "__SHARDINGKEY", "DELAY"] {
        assert!(copy.property("pumphouse").contains(packed), "{packed}: {copy:#?}");
    }
    assert_eq!((copy.group.as_str(), copy.properties.get("DELAY")), ("", None));
    host.until(LONG, "the copy in a handler", || scene.guest_said("done").contains(&copy.id));
    let report: Value = scene
        .lines()
        .iter()
        .filter(|line| line.is_guests() && line.field("context") == "report")
        .map(|line| serde_json::from_str(line.field("text")).expect("a report"))
        .next()
        .expect("a report");
    assert_eq!(report["count"], 1, "as it was stamped");
    for (name, value) in strange {
        let found = report["headers"].as_array().unwrap().iter().filter(|one| one[0] == name);
        let found: Vec<&Value> = found.map(|one| &one[1]).collect();
        assert_eq!(found, [&json!(value)], "{name}: {report}");
    }
    let counted = report["headers"].as_array().unwrap().iter().find(|one| one[0] == counter.0);
    assert_eq!(counted, None);
    assert_eq!(host.stop(), 0);
    space.assert_settled("copies", false);
}
