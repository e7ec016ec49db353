//! SQS, fed directly or through SNS.
//!
//! Hosts reach the server through a proxy of the trial's own, which counts what they call and loses what a case
//! wants lost. The case itself looks at queues past the proxy, and sends as a program that is not ours does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result, bail, ensure};
use aws_sdk_sqs::types::MessageSystemAttributeName;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Counted, HeaderValue, Outgoing};
use pumphouse_sqs::{
    Envelope, NativeRedrive, Provision, SinkSpec, SourceSpec, SqsSettings, StaticCredentials,
};
use pumphouse_test_brokers::proxy::{On, Proxy};
use pumphouse_test_brokers::raw;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::{Fault, Foreign, Names, Operations, Place, QueueFacts, Wants, one_less, topics};
use crate::allocations;
use crate::cell::{Cell, Configuration, Server};
use crate::world::World;

const REGION: &str = "us-east-1";

/// One trial's way to a server.
pub(crate) struct Sqs {
    world: Arc<World>,
    configuration: Configuration,
    endpoint: String,
    proxy: Proxy,
    /// What hosts use; a restart makes another.
    hosts: Mutex<pumphouse_sqs::Sqs>,
    /// What the case uses.
    own: pumphouse_sqs::Sqs,
}

impl Sqs {
    pub(crate) async fn new(world: &Arc<World>, cell: Cell) -> Result<Self> {
        let endpoint = match cell.server {
            Server::Fauxqs => world.fauxqs().await?,
            Server::ElasticMq => world.elasticmq().await?,
            Server::None | Server::Emulator | Server::RocketMq => {
                bail!("SQS needs a server of its own")
            }
        };
        let proxy = Proxy::start(&endpoint).await?;
        let hosts = Mutex::new(connect(world, proxy.endpoint()).await?);
        let own = connect(world, endpoint.clone()).await?;
        let configuration = cell.configuration;
        Ok(Self { world: world.clone(), configuration, endpoint, proxy, hosts, own })
    }

    fn spec(&self, names: &Names, wants: Wants, provision: Provision) -> SourceSpec {
        let topic = self.configuration.has_topic().then(|| names.topic());
        let enveloped = self.configuration == Configuration::SnsEnveloped;
        SourceSpec {
            topic,
            envelope: if enveloped { Envelope::Enveloped } else { Envelope::Raw },
            native: wants.native.map(|max_receive_count| NativeRedrive {
                max_receive_count,
                dead_letter: names.of(Place::Native),
            }),
            ..SourceSpec::new(names.of(Place::Source), provision)
        }
    }

    pub(crate) async fn create(&self, names: &Names, wants: Wants) -> Result<()> {
        if let Some(bytes) = wants.dead_letter_bytes {
            self.create_limited(&names.of(Place::DeadLetter), bytes).await?;
        }
        self.own.source(self.spec(names, wants, Provision::Create)).await?;
        for place in [Place::DeadLetter, Place::Invalid] {
            self.own.sink(SinkSpec::new(names.of(place), Provision::Create)).await?;
        }
        Ok(())
    }

    async fn create_limited(&self, queue: &str, bytes: u32) -> Result<()> {
        let mut attributes = json!({ "MaximumMessageSize": bytes.to_string() });
        if let Some(attributes) = attributes.as_object_mut().filter(|_| queue.ends_with(".fifo")) {
            attributes.insert("FifoQueue".to_owned(), "true".into());
        }
        self.call("CreateQueue", json!({ "QueueName": queue, "Attributes": attributes })).await?;
        Ok(())
    }

    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        self.own.sink(SinkSpec::new(queue, Provision::Create)).await?;
        Ok(())
    }

    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        let asked = json!({ "QueueName": queue });
        Ok(raw::sqs(&self.endpoint, "GetQueueUrl", &asked).await?.status == 200)
    }

    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        let spec = self.spec(names, Wants::default(), Provision::Assume);
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, ..SourceSpec::new(queue, Provision::Assume) };
        Ok(self.hosts.lock().await.source(spec).await?)
    }

    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec { rejected: true, ..SourceSpec::new(queue, Provision::Assume) };
        Ok(self.own.source(spec).await?)
    }

    /// Checked where it is there, so that its size limit is known; assumed where it is missing.
    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        let there = self.exists(queue).await?;
        let provision = if there { Provision::Validate } else { Provision::Assume };
        Ok(self.hosts.lock().await.sink(SinkSpec::new(queue, provision)).await?)
    }

    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        Ok(self.own.sink(SinkSpec::new(queue, Provision::Assume)).await?)
    }

    pub(crate) async fn facts(&self, names: &Names) -> Result<QueueFacts> {
        let found = self.own.facts(&self.spec(names, Wants::default(), Provision::Assume)).await?;
        Ok(QueueFacts {
            native_limit: found.native_limit,
            retention: found.retention,
            ..QueueFacts::default()
        })
    }

    /// Other connections, as another process would have.
    pub(crate) async fn restart(&self) -> Result<()> {
        *self.hosts.lock().await = connect(&self.world, self.proxy.endpoint()).await?;
        Ok(())
    }

    /// The servers end with the run, and nobody finds the queues of a trial that is over.
    pub(crate) async fn close(&self) {}

    /// What hosts called so far, by operation.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        self.proxy.counts()
    }

    pub(crate) fn operations(&self) -> Operations {
        Operations {
            receive: "ReceiveMessage",
            delivery: "1 ReceiveMessage",
            release: "ChangeMessageVisibilityBatch",
            ack: "DeleteMessageBatch",
            publish: "SendMessage",
        }
    }

    /// A rule for what hosts call about a queue.
    fn on(&self, operation: &str, queue: String) -> On<'_> {
        self.proxy.on(operation).when(move |request| names_queue(request, &queue))
    }

    /// The next calls about a queue go wrong.
    pub(crate) fn spoil(&self, fault: Fault, queue: &str, times: u64) {
        let Operations { receive, release, ack, publish, .. } = self.operations();
        let on = |operation| self.on(operation, queue.to_owned());
        match fault {
            Fault::Publish => on(publish).times(times).drop_before(),
            Fault::Confirmation => on(publish).times(times).drop_after(),
            Fault::Ack => on(ack).times(times).drop_before(),
            Fault::Release => on(release).times(times).error(500, "InternalFailure", "scripted"),
            Fault::Answer => {
                let left = AtomicU64::new(times);
                on(receive).rewrite(move |_, answer| {
                    let messages = answer.get("Messages").and_then(Value::as_array);
                    if messages.is_some_and(|it| !it.is_empty()) && one_less(&left) {
                        *answer = json!({});
                    }
                })
            }
        };
    }

    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        let sent = Sent::new(message)?;
        if self.configuration.has_topic() {
            return topics::publish(&self.endpoint, &names.topic(), sent).await;
        }
        let queue = names.of(Place::Source);
        let mut input = json!({
            "QueueUrl": format!("{}/000000000000/{queue}", self.endpoint),
            "MessageBody": sent.body,
            "MessageAttributes": sent.attributes.iter().map(Attribute::json).collect::<Map<_, _>>(),
        });
        if let Some(input) = input.as_object_mut().filter(|_| self.configuration.is_fifo()) {
            input.insert("MessageGroupId".to_owned(), sent.group.into());
            input.insert("MessageDeduplicationId".to_owned(), sent.deduplication.into());
        }
        self.call("SendMessage", input).await?;
        Ok(())
    }

    async fn call(&self, operation: &str, input: Value) -> Result<Value> {
        let answer = raw::sqs(&self.endpoint, operation, &input).await?;
        ensure!(
            answer.status == 200,
            "{operation} was answered {}: {}",
            answer.status,
            answer.body
        );
        Ok(answer.body)
    }

    /// The one message of a queue, by a client that knows nothing of ours.
    pub(crate) async fn foreign(&self, queue: &str) -> Result<Foreign> {
        let input = json!({
            "QueueUrl": format!("{}/000000000000/{queue}", self.endpoint),
            "WaitTimeSeconds": 2,
            "MessageAttributeNames": ["All"],
        });
        let answer = self.call("ReceiveMessage", input).await?;
        let message = answer.pointer("/Messages/0").context("the queue is empty")?;
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let packed = text("/MessageAttributes/pumphouse/StringValue").context("no metadata")?;
        let body = text("/Body").unwrap_or_default().to_owned();
        let packed: Map<String, Value> = serde_json::from_str(packed)?;
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        Ok(Foreign { body, metadata: packed.into_iter().filter_map(text).collect() })
    }
}

fn names_queue(request: &Value, queue: &str) -> bool {
    let url = request.get("QueueUrl").and_then(Value::as_str).unwrap_or_default();
    url.rsplit('/').next() == Some(queue)
}

async fn connect(world: &World, endpoint: String) -> Result<pumphouse_sqs::Sqs> {
    let credentials = StaticCredentials {
        access_key_id: "test".to_owned(),
        secret_access_key: "test".to_owned(),
        session_token: None,
    };
    let settings = SqsSettings {
        region: Some(REGION.to_owned()),
        endpoint: Some(endpoint),
        credentials: Some(credentials),
        ..SqsSettings::new(world.clock.clone())
    };
    Ok(pumphouse_sqs::Sqs::connect(settings).await?)
}

/// A message as a program that is not ours sends it: what is no text in base64, and said so.
pub(super) struct Sent {
    pub(super) body: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) group: String,
    pub(super) deduplication: String,
}

pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) data_type: &'static str,
    /// Bytes in base64.
    pub(super) value: String,
}

impl Attribute {
    fn new(name: &str, value: &HeaderValue) -> Self {
        let (data_type, value) = match value {
            HeaderValue::Text(text) => ("String", text.clone()),
            HeaderValue::Number(digits) => ("Number", digits.clone()),
            HeaderValue::Binary(bytes) => ("Binary", STANDARD.encode(bytes)),
        };
        Self { name: name.to_owned(), data_type, value }
    }

    /// The field that the value is in.
    pub(super) fn field(&self) -> &'static str {
        if self.data_type == "Binary" { "BinaryValue" } else { "StringValue" }
    }

    fn json(&self) -> (String, Value) {
        let value = json!({ "DataType": self.data_type, self.field(): self.value });
        (self.name.clone(), value)
    }
}

impl Sent {
    fn new(message: Outgoing) -> Result<Self> {
        ensure!(message.stamp.is_none(), "a copy is the host's to send");
        let mut attributes: Vec<_> =
            message.headers.iter().map(|(name, value)| Attribute::new(name, value)).collect();
        let body = match String::from_utf8(message.body.to_vec()) {
            Ok(text) => text,
            Err(error) => {
                let encoding = HeaderValue::from("base64");
                attributes.push(Attribute::new(pumphouse_sqs::ENCODING, &encoding));
                STANDARD.encode(error.as_bytes())
            }
        };
        let group = message.ordering_key.unwrap_or_else(|| "none".to_owned());
        Ok(Self { body, attributes, group, deduplication: unique() })
    }
}

/// A deduplication id that no other message has.
fn unique() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("m{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// How often reading the count of a message of SQS allocates, as the transport does it.
pub(crate) fn allocations_of_counting(counter: &str) -> Result<u64> {
    let message = aws_sdk_sqs::types::Message::builder()
        .attributes(MessageSystemAttributeName::ApproximateReceiveCount, counter)
        .attributes(MessageSystemAttributeName::SentTimestamp, "1")
        .build();
    let (counted, allocated) = allocations::of(|| pumphouse_sqs::counted(&message));
    ensure!(counted != Counted::Unreported, "the counter {counter} was not read");
    Ok(allocated)
}
