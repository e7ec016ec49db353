//! RocketMQ's own client, in Java: what it sends is handled, and what the host dead-letters is read by it.

use pumphouse_e2e::rocketmq::Space;
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::{JavaClient, JavaMessage, Received, Sent};
use serde_json::{Value, json};

use crate::common::{DEAD, HOST, WAYS, work};

pumphouse_e2e::tests! {
    rocketmqs_client_is_understood_and_understands,
}

/// The client compresses bodies of 4 KiB and more.
const LARGE: usize = 200_000;

fn sent(client: &JavaClient, topic: &str, messages: &[JavaMessage]) -> Vec<Sent> {
    block_on(client.send(topic, messages)).expect("sent")
}

fn message(body: &Value) -> JavaMessage {
    JavaMessage::new(body.to_string())
        .tag("red")
        .key("A-1")
        .key("A-2")
        .group("customer-7")
        .property("colour", "grün")
        .property("type", "order")
}

/// A message of the Java client is handled with its keys, tag, group and properties on both kinds of topic; a large
/// one, which that client compresses, arrives as it was. The copy of one that was rejected is read by the Java client,
/// with its metadata as properties.
fn rocketmqs_client_is_understood_and_understands() {
    let space = Space::new("interop");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, DEAD));
    let host = scene.start();
    let client = JavaClient::new(&space.place().namesrv);
    let padding = "pad ".repeat(LARGE / 4);
    let done = json!({ "do": "log", "text": "done", "then": "ack" });
    let taken = json!({ "do": "report", "then": done });
    let large = json!({ "do": "log", "text": "done", "then": "ack", "padding": padding });
    let rejected = |way: &str| json!({ "do": "reject", "reason": "delivery-error", "text": "nicht gewünscht", "way": way, "padding": padding });
    let all = WAYS.map(|way| {
        let messages = [message(&taken), message(&large), message(&rejected(way.name))];
        sent(&client, &space.name(way.name), &messages)
    });
    host.until(LONG, "all handled", || scene.guest_said("done").len() == 2 * WAYS.len());
    for (way, sent) in WAYS.iter().zip(&all) {
        let report = reports(&scene).into_iter().find(|report| report["id"] == sent[0].id);
        let report = report.unwrap_or_else(|| panic!("no report of {}", sent[0].id));
        assert_eq!(report["ordering-key"], "customer-7", "{}", way.name);
        let mut headers: Vec<(String, String)> =
            serde_json::from_value(report["headers"].clone()).expect("headers");
        headers.sort();
        let wanted = [("KEYS", "A-1 A-2"), ("TAGS", "red"), ("colour", "grün"), ("type", "order")];
        assert_eq!(headers, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(report["published-at"].is_number(), "{report}");
        let size = large.to_string().len();
        let call =
            format!("id={} count=0 source={} bytes={size}", sent[1].id, space.name(way.name));
        let calls: Vec<String> = scene
            .lines()
            .iter()
            .filter(|line| {
                line.field("context") == "call" && line.field("message_id") == sent[1].id
            })
            .map(|line| line.field("text").to_owned())
            .collect();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls[0].ends_with(&format!(" bytes={size}")), "{calls:?}, wanted {call}");
    }
    for (way, sent) in WAYS.iter().zip(&all) {
        let topic = format!("dead-{}", way.name);
        let original = &space.copies(LONG, &topic, 1)[0];
        assert_eq!(original.property("originalMessageId"), sent[2].id);
        space.create(&format!("readers-{topic}"), false);
        let group = space.name(&format!("readers-{topic}-work"));
        let topic = space.name(&topic);
        let copies = block_on(client.receive(&topic, &group, 1, LONG));
        let copies: Vec<Received> = copies.expect("read");
        let [copy] = copies.as_slice() else { panic!("{copies:#?}") };
        let property = |name: &str| copy.properties.get(name).map(String::as_str);
        assert_eq!(property("originalMessageId"), Some(sent[2].id.as_str()));
        assert_eq!(property("originalTopic"), Some(space.name(way.name).as_str()));
        assert_eq!(property("rejectionReason"), Some("DeliveryError"));
        assert_eq!(property("rejectionMessage"), Some("nicht gewünscht"));
        assert_eq!(property("originalMessageType"), Some("order"));
        assert_eq!(property("colour"), Some("grün"));
        assert_eq!((copy.keys.as_deref(), copy.tag.as_deref()), (Some("A-1 A-2"), Some("red")));
        assert_eq!(copy.group.as_deref(), Some("customer-7"));
        assert_eq!(copy.body, rejected(way.name).to_string().into_bytes(), "{}", way.name);
    }
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

fn reports(scene: &pumphouse_e2e::Scene) -> Vec<Value> {
    let lines = scene.lines().into_iter();
    let reports = lines.filter(|line| line.is_guests() && line.field("context") == "report");
    reports.map(|line| serde_json::from_str(line.field("text")).expect("a report")).collect()
}
