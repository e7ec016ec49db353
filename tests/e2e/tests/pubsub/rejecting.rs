//! Rejected copies, as another program finds them at the destination, and when the original goes.

use std::time::{Duration, Instant};

use pumphouse_e2e::pubsub::{Project, Published, Tap, acknowledged, emulator, message, published};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::grpc::{GrpcProxy, Seen, code};
use serde_json::{Value, json};

use crate::common::{HOST, PAST_LEASES, WAYS, WORK, subscription, work};

pumphouse_e2e::tests! {
    fr_05_a_rejection_is_a_confirmed_copy_and_then_an_acknowledgement,
    fr_07_the_original_stays_until_the_copy_is_confirmed,
}

/// How long a publish takes, so that whoever does not wait for it is seen.
const PUBLISHING: Duration = Duration::from_millis(700);

/// FR-05, C-9, C-10, C-11: four ways, two reasons: each message is found once at the destination of its reason, with
/// its metadata, body, attributes and key, and is acknowledged only after the copy was confirmed.
fn fr_05_a_rejection_is_a_confirmed_copy_and_then_an_acknowledgement() {
    let project = Project::new("fr05");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let slow = proxy.on("Publish").delay(PUBLISHING);
    let tap = Tap::on(&proxy);
    let rest = "dead_letter = { pubsub.topic = \"dead\" }\ninvalid_message = { pubsub = { topic = \"invalid\", subscription = \"invalid-reader\" } }";
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, rest));
    let host = scene.start();
    let attributes = json!({
        "type": "order",
        "colour": "blau – grün",
        "googclient_deliveryattempt": "7",
        "CloudPubSubDeadLetterSourceDeliveryCount": "5",
    });
    let mut sent = Vec::new();
    for way in WAYS {
        for (reason, to) in [("unacceptable", "invalid-reader"), ("delivery-error", "dead")] {
            let body =
                json!({ "do": "reject", "reason": reason, "text": "not wanted", "way": way.name });
            let ids =
                project.publish_messages(way.name, &[message(&body, "customer-7", &attributes)]);
            sent.push((way, reason, to, body, ids[0].clone()));
        }
    }
    for to in ["invalid-reader", "dead"] {
        let copies = project.take(to, WAYS.len());
        for (way, reason, _, body, id) in sent.iter().filter(|one| one.2 == to) {
            let copy =
                copies.iter().find(|copy| copy.attribute("originalMessageId") == id).unwrap();
            let wanted = if *reason == "unacceptable" { "Unacceptable" } else { "DeliveryError" };
            assert_eq!(copy.attribute("rejectionReason"), wanted);
            assert_eq!(copy.attribute("rejectionMessage"), "not wanted");
            assert_eq!(copy.attribute("originalTopic"), way.name);
            assert_eq!(copy.attribute("originalMessageType"), "order");
            assert_eq!(copy.attribute("deliveryCount"), "1");
            assert!(copy.attribute("rejectionTimestamp").starts_with("20"), "{copy:#?}");
            assert!(copy.attribute("rejectedBy").starts_with(way.name), "{copy:#?}");
            assert_eq!(
                (copy.body.as_str(), copy.key.as_str()),
                (body.to_string().as_str(), "customer-7")
            );
            assert_eq!(copy.attribute("colour"), "blau – grün");
            let misleading = |name: &String| {
                name.starts_with("googclient_") || name.starts_with("CloudPubSubDeadLetterSource")
            };
            assert!(!copy.attributes.keys().any(misleading), "{copy:#?}");
        }
    }
    assert_eq!(host.stop(), 0);
    assert_eq!(slow.count(), u64::try_from(sent.len()).unwrap(), "one publish each");
    let requests = proxy.requests();
    for (way, .., id) in &sent {
        let copied = when(&requests, |seen| published(seen).iter().any(|one| is_copy_of(one, id)));
        let removed = when(&requests, |seen| {
            acknowledged(seen).iter().any(|ack| tap.message_id(ack).as_ref() == Some(id))
        });
        let ([copied], [removed]) = (copied.as_slice(), removed.as_slice()) else {
            panic!("{}: copies {copied:?}, acknowledgements {removed:?}", way.name);
        };
        let waited = removed.duration_since(*copied);
        assert!(
            waited >= PUBLISHING,
            "{}: acknowledged {waited:?} after the publish began",
            way.name
        );
        project.assert_empty(way.name);
    }
}

fn when(requests: &[Seen], is: impl Fn(&Seen) -> bool) -> Vec<Instant> {
    requests.iter().filter(|seen| is(seen)).map(|seen| seen.at).collect()
}

fn is_copy_of(published: &Published, id: &str) -> bool {
    published.attributes.get("originalMessageId").is_some_and(|original| original == id)
}

/// FR-07, C-13: the destination is missing, is denied, and then not answered in time; the original is not
/// acknowledged, comes back after the backoff, and goes when a copy is confirmed.
fn fr_07_the_original_stays_until_the_copy_is_confirmed() {
    let project = Project::new("fr07");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let to = |topic: String| {
        move |request: &[u8]| pumphouse_e2e::pubsub::subscription_of(request).ends_with(&topic)
    };
    let mut text = WORK.to_owned();
    for way in WAYS {
        let rest = format!(
            "retry = {{ backoff = \"1s\", max_backoff = \"1s\", jitter = \"none\" }}\ndead_letter = {{ pubsub.topic = \"dead-{}\" }}",
            way.name
        );
        text += &subscription(way.name, way, &rest);
    }
    let scene = project.scene(&proxy.endpoint(), HOST, &text);
    let host = scene.start();
    let mut rules = Vec::new();
    let mut ids: Vec<(&str, String)> = Vec::new();
    for way in WAYS {
        let topic = format!("/dead-{}", way.name);
        let on = || proxy.on("Publish").when(to(topic.clone())).times(1);
        rules.push([
            on().status(code::NOT_FOUND, "Resource not found"),
            on().status(code::PERMISSION_DENIED, "not yours"),
            on().status(code::INVALID_ARGUMENT, "not so"),
        ]);
        let body: Value = crate::common::reject();
        let sent = project.publish_messages(way.name, &[message(&body, "customer-7", &json!({}))]);
        ids.push((way.name, sent[0].clone()));
    }
    for (way, id) in &ids {
        let copy = &project.take_within(PAST_LEASES, &format!("dead-{way}"), 1)[0];
        assert_eq!(copy.attribute("originalMessageId"), id);
        assert_eq!(
            (copy.attribute("rejectionMessage"), copy.key.as_str()),
            ("not wanted", "customer-7")
        );
    }
    let removed = |way: &str| {
        host.metrics().sum("pumphouse_dead_letter_messages_total", &[("subscription", way)]) == 1.0
    };
    host.until(LONG, "all confirmed", || WAYS.iter().all(|way| removed(way.name)));
    let metrics = host.metrics();
    assert_eq!(host.stop(), 0);
    for (way, failed) in ids.iter().zip(&rules) {
        let (way, id) = way;
        assert_eq!(failed.each_ref().map(|rule| rule.count()), [1, 1, 1], "{way}");
        let failures =
            metrics.sum("pumphouse_dead_letter_publish_failures_total", &[("subscription", way)]);
        assert_eq!(failures, 3.0, "{way}");
        // C-14: each turn calls the handler again and logs an error that names the message.
        let errors = host_errors(&scene, id);
        assert_eq!(errors, 3, "{way}");
        let calls: Vec<_> = scene.calls().into_iter().filter(|call| call.id == *id).collect();
        assert_eq!(calls.len(), 4, "{way}");
        // 1 s each: not a spin.
        assert!(calls[3].since(&calls[0]) >= Duration::from_millis(2_900), "{calls:?}");
        project.assert_empty(way);
    }
}

fn host_errors(scene: &pumphouse_e2e::Scene, id: &str) -> usize {
    let said = "rejected message could not be routed and stays at its source";
    let lines = scene.lines();
    let ours =
        lines.iter().filter(|line| line.field("message") == said && line.field("message_id") == id);
    ours.filter(|line| line.field("level") == "ERROR").count()
}
