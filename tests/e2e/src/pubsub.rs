//! Topics and subscriptions of the real Pub/Sub emulator, as another program sees them.

mod requests;
mod tap;

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pumphouse_test_brokers::{PubsubEmulator, raw};
use serde_json::{Map, Value, json};

pub use requests::{Deadline, Published, acknowledged, deadline, published, subscription_of};
pub use tap::Tap;

use crate::scene::Scene;
use crate::servers::{block_on, unique};
use crate::wait::{LONG, poll, until};

/// A pull that finds nothing so often finds nothing.
const LOOKS: usize = 3;

/// The emulator that many tests share.
#[must_use]
pub fn emulator() -> String {
    static SERVER: OnceLock<PubsubEmulator> = OnceLock::new();
    SERVER.get_or_init(|| block_on(PubsubEmulator::start()).expect("the emulator")).endpoint()
}

/// A project of an emulator, which takes every name for one: what is in it is this test's alone.
#[derive(Debug, Clone)]
pub struct Project {
    endpoint: String,
    /// Its id.
    pub name: String,
}

/// A message as a pull shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Its id.
    pub id: String,
    /// Its body.
    pub body: String,
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// Its ordering key; empty where it has none.
    pub key: String,
    /// How often it was delivered; 0 where that is not counted.
    pub attempt: u64,
    ack_id: String,
}

impl Received {
    fn of(value: &Value) -> Self {
        let message = &value["message"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let body = STANDARD.decode(text(&message["data"])).expect("base64");
        Self {
            id: text(&message["messageId"]),
            body: String::from_utf8(body).expect("text"),
            attributes: message["attributes"].as_object().cloned().unwrap_or_default(),
            key: text(&message["orderingKey"]),
            attempt: value["deliveryAttempt"].as_u64().unwrap_or_default(),
            ack_id: text(&value["ackId"]),
        }
    }

    /// An attribute as text.
    ///
    /// # Panics
    /// When it has none of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{name}: {self:#?}"))
    }
}

impl Project {
    /// One of the shared emulator.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::at(&emulator(), name)
    }

    /// One of this emulator.
    #[must_use]
    pub fn at(endpoint: &str, name: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), name: unique(name) }
    }

    /// A scene whose hosts find this project at an endpoint: the emulator's own, or a proxy's. They make what is
    /// missing.
    ///
    /// # Panics
    /// When there is no room for it.
    #[must_use]
    pub fn scene(&self, endpoint: &str, host: &str, text: &str) -> Scene {
        Scene::with_host(host, &(self.table(endpoint) + text))
    }

    /// The table `[pubsub]` of such a scene.
    #[must_use]
    pub fn table(&self, endpoint: &str) -> String {
        format!(
            "[pubsub]\nproject = \"{}\"\nendpoint = \"{endpoint}\"\nprovision = \"create\"\n\n",
            self.name
        )
    }

    /// Asks for what is below the project, whatever the answer's status.
    ///
    /// # Panics
    /// When there is no answer.
    #[must_use]
    pub fn ask(&self, method: &str, path: &str, input: &Value) -> raw::Answer {
        let path = format!("projects/{}/{path}", self.name);
        block_on(raw::pubsub(&self.endpoint, method, &path, input)).expect("an answer")
    }

    fn call(&self, method: &str, path: &str, input: &Value) -> Value {
        let answer = self.ask(method, path, input);
        assert_eq!(answer.status, 200, "{method} {path} of {}: {}", self.name, answer.body);
        answer.body
    }

    /// Makes a topic, where it is not there yet, and a subscription to it with these settings.
    ///
    /// # Panics
    /// When the emulator refuses.
    pub fn create(&self, topic: &str, subscription: &str, settings: &Value) {
        let made = self.ask("PUT", &format!("topics/{topic}"), &Value::Null);
        assert!([200, 409].contains(&made.status), "{topic}: {}", made.body);
        let mut settings = settings.clone();
        settings["topic"] = format!("projects/{}/topics/{topic}", self.name).into();
        self.call("PUT", &format!("subscriptions/{subscription}"), &settings);
    }

    /// A subscription as it is.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn subscription(&self, name: &str) -> Value {
        self.call("GET", &format!("subscriptions/{name}"), &Value::Null)
    }

    /// Publishes a body; the id.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn publish(&self, topic: &str, body: &Value) -> String {
        self.publish_all(topic, std::slice::from_ref(body)).pop().expect("an id")
    }

    /// Publishes bodies in one request; their ids.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn publish_all(&self, topic: &str, bodies: &[Value]) -> Vec<String> {
        let messages: Vec<Value> =
            bodies.iter().map(|body| message(body, "", &json!({}))).collect();
        self.publish_messages(topic, &messages)
    }

    /// Publishes bodies of one ordering key in one request; their ids.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn publish_keyed(&self, topic: &str, key: &str, bodies: &[Value]) -> Vec<String> {
        let messages: Vec<Value> =
            bodies.iter().map(|body| message(body, key, &json!({}))).collect();
        self.publish_messages(topic, &messages)
    }

    /// Publishes what [`message`] made in one request; the ids.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn publish_messages(&self, topic: &str, messages: &[Value]) -> Vec<String> {
        let answer =
            self.call("POST", &format!("topics/{topic}:publish"), &json!({ "messages": messages }));
        let ids = answer["messageIds"].as_array().expect("ids").iter();
        let ids: Vec<String> = ids.map(|id| id.as_str().expect("an id").to_owned()).collect();
        assert_eq!(ids.len(), messages.len());
        ids
    }

    /// What a subscription has to give now, without waiting. It is leased, not removed.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn visible(&self, subscription: &str) -> Vec<Received> {
        let mut found = Vec::new();
        let mut misses = 0;
        while misses < LOOKS {
            let input = json!({ "maxMessages": 1_000, "returnImmediately": true });
            let answer = self.call("POST", &format!("subscriptions/{subscription}:pull"), &input);
            let some = answer["receivedMessages"].as_array().cloned().unwrap_or_default();
            misses = if some.is_empty() { misses + 1 } else { 0 };
            found.extend(some.iter().map(Received::of));
        }
        found
    }

    /// What nobody has acknowledged, leased or not: the subscription is set to a snapshot of itself. Counts begin anew. To be asked
    /// when nobody else reads it.
    ///
    /// # Panics
    /// When the emulator refuses.
    #[must_use]
    pub fn left(&self, subscription: &str) -> Vec<Received> {
        let snapshot = unique("left");
        let own = format!("projects/{}/subscriptions/{subscription}", self.name);
        self.call("PUT", &format!("snapshots/{snapshot}"), &json!({ "subscription": own }));
        // What the snapshot holds is nobody's after it.
        let to = json!({ "snapshot": format!("projects/{}/snapshots/{snapshot}", self.name) });
        self.call("POST", &format!("subscriptions/{subscription}:seek"), &to);
        self.visible(subscription)
    }

    /// Asserts that everything was acknowledged. To be asked when nobody else reads it.
    ///
    /// # Panics
    /// When something is left.
    pub fn assert_empty(&self, subscription: &str) {
        let left = self.left(subscription);
        assert!(left.is_empty(), "{subscription} still has {left:#?}");
    }

    /// Receives and removes this many messages, and sees that there are no more.
    ///
    /// # Panics
    /// When there are others.
    #[must_use]
    pub fn take(&self, subscription: &str, wanted: usize) -> Vec<Received> {
        self.take_within(LONG, subscription, wanted)
    }

    /// As [`Project::take`], within this time.
    ///
    /// # Panics
    /// When there are others.
    #[must_use]
    pub fn take_within(&self, limit: Duration, subscription: &str, wanted: usize) -> Vec<Received> {
        let mut taken: Vec<Received> = Vec::new();
        until(limit, &format!("{wanted} messages in {subscription}"), || {
            let found = self.visible(subscription);
            let ids: Vec<&str> = found.iter().map(|one| one.ack_id.as_str()).collect();
            if !ids.is_empty() {
                let input = json!({ "ackIds": ids });
                self.call("POST", &format!("subscriptions/{subscription}:acknowledge"), &input);
            }
            taken.extend(found);
            taken.len() >= wanted
        });
        taken.extend(self.visible(subscription));
        assert_eq!(taken.len(), wanted, "{subscription}: {taken:#?}");
        taken
    }

    /// Ends leases that somebody else has.
    ///
    /// # Panics
    /// When the emulator refuses.
    pub fn end_leases(&self, subscription: &str, ack_ids: &[String]) {
        let input = json!({ "ackIds": ack_ids, "ackDeadlineSeconds": 0 });
        self.call("POST", &format!("subscriptions/{subscription}:modifyAckDeadline"), &input);
    }

    /// Waits until a subscription is there.
    ///
    /// # Panics
    /// When it is not in time.
    pub fn wait_for(&self, limit: Duration, subscription: &str) {
        let path = format!("subscriptions/{subscription}");
        let there = poll(limit, Duration::from_millis(100), || {
            (self.ask("GET", &path, &Value::Null).status == 200).then_some(())
        });
        assert!(there.is_some(), "no subscription {subscription} in {}", self.name);
    }
}

/// A message to be published.
#[must_use]
pub fn message(body: &Value, key: &str, attributes: &Value) -> Value {
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    json!({ "data": STANDARD.encode(body), "orderingKey": key, "attributes": attributes })
}
