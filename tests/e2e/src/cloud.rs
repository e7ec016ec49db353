//! Queues of real SQS servers, as another program sees them.

use std::sync::OnceLock;
use std::time::Duration;

use pumphouse_test_brokers::{ElasticMq, Fauxqs, Storage, raw};
use serde_json::{Map, Value, json};

use crate::scene::Scene;
use crate::servers::block_on;
use crate::wait::{LONG, poll, until};

/// The fauxqs that many tests share.
#[must_use]
pub fn fauxqs() -> String {
    static SERVER: OnceLock<Fauxqs> = OnceLock::new();
    SERVER.get_or_init(|| block_on(Fauxqs::start()).expect("fauxqs")).endpoint()
}

/// The ElasticMQ that many tests share.
#[must_use]
pub fn elasticmq() -> String {
    static SERVER: OnceLock<ElasticMq> = OnceLock::new();
    let start = || block_on(ElasticMq::start(Storage::Memory)).expect("ElasticMQ");
    SERVER.get_or_init(start).endpoint()
}

/// A scene whose hosts find this server, and credentials that it does not look at.
///
/// # Panics
/// When there is no room for it.
#[must_use]
pub fn scene(endpoint: &str, host: &str, text: &str) -> Scene {
    let table = format!(
        "[sqs]\nregion = \"us-east-1\"\nendpoint = \"{endpoint}\"\nprovision = \"create\"\n\n"
    );
    let mut scene = Scene::with_host(host, &(table + text));
    scene.set("AWS_ACCESS_KEY_ID", "x");
    scene.set("AWS_SECRET_ACCESS_KEY", "x");
    scene
}

/// A queue of a server.
#[derive(Debug, Clone)]
pub struct Queue {
    endpoint: String,
    /// Its name.
    pub name: String,
    url: String,
}

/// How many messages a queue holds, by what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// To be received.
    pub visible: u64,
    /// Received or deferred.
    pub hidden: u64,
}

impl Depth {
    /// Nothing at all.
    pub const NONE: Self = Self { visible: 0, hidden: 0 };
}

impl Queue {
    /// Makes it.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn create(endpoint: &str, name: &str, attributes: &Value) -> Self {
        let mut queue = Self::at(endpoint, name);
        let made =
            queue.call("CreateQueue", &json!({ "QueueName": name, "Attributes": attributes }));
        made["QueueUrl"].as_str().expect("a queue URL").clone_into(&mut queue.url);
        queue
    }

    /// One that the host makes, or has made.
    #[must_use]
    pub fn at(endpoint: &str, name: &str) -> Self {
        let url = format!("{endpoint}/000000000000/{name}");
        Self { endpoint: endpoint.to_owned(), name: name.to_owned(), url }
    }

    fn call(&self, operation: &str, input: &Value) -> Value {
        let answer = block_on(raw::sqs(&self.endpoint, operation, input)).expect("an answer");
        assert_eq!(answer.status, 200, "{operation} of {}: {}", self.name, answer.body);
        answer.body
    }

    fn with_url(&self, input: Value) -> Value {
        let Value::Object(mut input) = input else { panic!("{input} is no object") };
        input.insert("QueueUrl".to_owned(), self.url.clone().into());
        Value::Object(input)
    }

    /// Sends a body; the id.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn send(&self, body: &Value) -> String {
        self.send_with(body, &Map::new())
    }

    /// Sends a body with further parameters of `SendMessage`; the id.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn send_with(&self, body: &Value, more: &Map<String, Value>) -> String {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let mut input = more.clone();
        input.insert("MessageBody".to_owned(), body.into());
        let sent = self.call("SendMessage", &self.with_url(Value::Object(input)));
        sent["MessageId"].as_str().expect("an id").to_owned()
    }

    /// Sends a body so often; the ids.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn send_all(&self, body: &Value, times: usize) -> Vec<String> {
        (0..times).map(|_| self.send(body)).collect()
    }

    /// How many messages it holds.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let input = self.with_url(json!({ "AttributeNames": ["All"] }));
        let answer = self.call("GetQueueAttributes", &input);
        let number = |name: &str| {
            let text = answer["Attributes"][name].as_str().unwrap_or("0");
            text.parse::<u64>().expect("a number")
        };
        Depth {
            visible: number("ApproximateNumberOfMessages"),
            hidden: number("ApproximateNumberOfMessagesNotVisible")
                + number("ApproximateNumberOfMessagesDelayed"),
        }
    }

    /// Waits until it holds so much.
    ///
    /// # Panics
    /// When it does not in time.
    pub fn until(&self, limit: Duration, wanted: Depth) {
        let mut seen = None;
        let came = poll(limit, Duration::from_millis(100), || {
            seen = Some(self.depth());
            (seen == Some(wanted)).then_some(())
        });
        assert!(came.is_some(), "{} holds {seen:?} and not {wanted:?}", self.name);
    }

    /// Receives and removes this many messages, and sees that there are no more.
    ///
    /// # Panics
    /// When there are others.
    #[must_use]
    pub fn take(&self, wanted: usize) -> Vec<Value> {
        let mut taken = Vec::new();
        until(LONG, "messages at the destination", || {
            taken.extend(self.receive());
            taken.len() >= wanted
        });
        taken.extend(self.receive());
        assert_eq!(taken.len(), wanted, "{}: {taken:#?}", self.name);
        taken
    }

    fn receive(&self) -> Vec<Value> {
        let input = json!({
            "MaxNumberOfMessages": 10,
            "WaitTimeSeconds": 1,
            "MessageAttributeNames": ["All"],
            "AttributeNames": ["All"],
        });
        let answer = self.call("ReceiveMessage", &self.with_url(input));
        let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
        for message in &messages {
            let input = self.with_url(json!({ "ReceiptHandle": message["ReceiptHandle"] }));
            self.call("DeleteMessage", &input);
        }
        messages
    }
}

/// The rejection metadata of a copy that was received, and its own attributes: those that stand for themselves and
/// those that were packed, as text.
///
/// # Panics
/// When it carries none.
#[must_use]
pub fn unpacked(copy: &Value) -> (Value, Map<String, Value>) {
    let attributes = copy["MessageAttributes"].as_object().expect("attributes");
    let packed = attributes["pumphouse"]["StringValue"].as_str().expect("the metadata");
    let packed: Value = serde_json::from_str(packed).expect("JSON");
    let own = attributes.iter().filter(|(name, _)| *name != "pumphouse");
    let mut own: Map<String, Value> =
        own.map(|(name, value)| (name.clone(), value["StringValue"].clone())).collect();
    for entry in packed["headers"].as_array().into_iter().flatten() {
        let name = entry[0].as_str().expect("a name").to_owned();
        own.insert(name, entry[2].clone());
    }
    (packed, own)
}
