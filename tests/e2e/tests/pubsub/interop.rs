//! Google's own client, in Python: what it publishes is handled, and what the host dead-letters is read by it.

use std::time::Duration;

use pumphouse_e2e::LONG;
use pumphouse_e2e::pubsub::{Project, emulator};
use pumphouse_e2e::python;
use serde_json::{Value, json};

use crate::common::{COUNTED, HOST, WAYS, work};

pumphouse_e2e::tests! {
    googles_client_is_understood_and_understands,
}

/// Publishes to each topic one message that is taken and one that is rejected, both with attributes and a key.
const PUBLISH: &str = "
import json, sys
from google.cloud import pubsub_v1
options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
client = pubsub_v1.PublisherClient(publisher_options=options)
ids = {}
for topic in sys.argv[2:]:
    path = client.topic_path(sys.argv[1], topic)
    taken = json.dumps({'do': 'report', 'then': {'do': 'log', 'text': 'done', 'then': 'ack'}})
    rejected = json.dumps({'do': 'reject', 'reason': 'delivery-error', 'text': 'nicht gewünscht', 'topic': topic})
    ids[topic] = [
        client.publish(path, body.encode(), ordering_key='k', colour='grün', type='order').result(timeout=30)
        for body in (taken, rejected)
    ]
print(json.dumps(ids))
";

/// Reads so many messages of a subscription and acknowledges them.
const READ: &str = "
import json, sys
from concurrent.futures import TimeoutError
from google.cloud import pubsub_v1
wanted, found = int(sys.argv[3]), []
client = pubsub_v1.SubscriberClient()
path = client.subscription_path(sys.argv[1], sys.argv[2])
def take(message):
    found.append({'body': message.data.decode(), 'attributes': dict(message.attributes), 'key': message.ordering_key})
    message.ack_with_response().result(timeout=30)
    if len(found) >= wanted:
        reading.cancel()
reading = client.subscribe(path, callback=take)
try:
    reading.result(timeout=40)
except TimeoutError:
    reading.cancel()
    reading.result()
print(json.dumps(found))
";

/// A message by Google's client is handled with its attributes and key in all four ways; the copy of one that was
/// rejected is read by Google's subscriber, with its metadata as attributes.
fn googles_client_is_understood_and_understands() {
    let project = Project::new("interop");
    let rest = format!("dead_letter = {{ pubsub.topic = \"dead\" }}\n{COUNTED}");
    let scene = project.scene(&emulator(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let address = emulator();
    let address = address.trim_start_matches("http://");
    let names = WAYS.map(|way| way.name);
    let arguments = [&[project.name.as_str()], names.as_slice()].concat();
    let ran = python::run(Duration::from_secs(90), address, PUBLISH, &arguments);
    let sent: Value = serde_json::from_str(&ran.stdout).expect("ids");
    host.until(LONG, "all handled", || scene.guest_said("done").len() == WAYS.len());
    let reports: Vec<Value> = scene
        .lines()
        .iter()
        .filter(|line| line.is_guests() && line.field("context") == "report")
        .map(|line| serde_json::from_str(line.field("text")).expect("a report"))
        .collect();
    for name in names {
        let report = reports.iter().find(|report| report["id"] == sent[name][0]).expect("a report");
        assert_eq!(report["ordering-key"], "k");
        assert_eq!(report["headers"], json!([["colour", "grün"], ["type", "order"]]));
        assert!(report["published-at"].is_number(), "{report}");
    }
    let wanted = WAYS.len().to_string();
    let arguments = [project.name.as_str(), "dead", wanted.as_str()];
    let ran = python::run(Duration::from_secs(90), address, READ, &arguments);
    assert_eq!(host.stop(), 0);
    let copies: Vec<Value> = serde_json::from_str(&ran.stdout).expect("copies");
    assert_eq!(copies.len(), WAYS.len(), "{copies:#?}");
    for name in names {
        let copy =
            copies.iter().find(|copy| copy["attributes"]["originalTopic"] == name).expect("a copy");
        let attributes = &copy["attributes"];
        assert_eq!(attributes["originalMessageId"], sent[name][1]);
        assert_eq!(attributes["rejectionReason"], "DeliveryError");
        assert_eq!(attributes["rejectionMessage"], "nicht gewünscht");
        assert_eq!(attributes["originalMessageType"], "order");
        assert_eq!(attributes["colour"], "grün");
        assert_eq!(copy["key"], "k");
        assert!(copy["body"].as_str().unwrap().contains(name), "{copy}");
    }
    project.assert_empty("dead");
}
