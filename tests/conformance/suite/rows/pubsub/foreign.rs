//! Pub/Sub as a program uses it that is not ours: by its REST interface, past the proxy.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pumphouse_contract::{HeaderValue, Outgoing};
use pumphouse_test_brokers::raw;
use serde_json::{Map, Value, json};

use super::PROJECT;
use crate::rows::Foreign;

/// The name of a resource: `topics/ID`, `subscriptions/ID` or `snapshots/ID`.
pub(super) fn full(resource: &str) -> String {
    format!("projects/{PROJECT}/{resource}")
}

/// A call that must succeed.
pub(super) async fn call(
    endpoint: &str,
    method: &str,
    resource: &str,
    input: Value,
) -> Result<Value> {
    let answer = raw::pubsub(endpoint, method, &full(resource), &input).await?;
    ensure!(
        answer.status == 200,
        "{method} of {resource} was answered {}: {}",
        answer.status,
        answer.body
    );
    Ok(answer.body)
}

pub(super) async fn exists(endpoint: &str, queue: &str) -> Result<bool> {
    let topic = full(&format!("topics/{queue}"));
    Ok(raw::pubsub(endpoint, "GET", &topic, &Value::Null).await?.status == 200)
}

/// How a subscription is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscribed {
    pub(super) ordered: bool,
    /// The acknowledgement deadline.
    pub(super) lease: Duration,
    /// The dead-letter policy: where to, and after how many deliveries.
    pub(super) policy: Option<(&'static str, u32)>,
}

/// Makes a topic; one that is there is as good.
pub(super) async fn make_topic(endpoint: &str, topic: &str) -> Result<()> {
    let resource = full(&format!("topics/{topic}"));
    let answer = raw::pubsub(endpoint, "PUT", &resource, &json!({})).await?;
    let made = answer.status == 200 || answer.status == 409;
    ensure!(made, "making {topic} was answered {}: {}", answer.status, answer.body);
    Ok(())
}

/// Makes a topic and a subscription of one name.
pub(super) async fn make(endpoint: &str, queue: &str, subscribed: Subscribed) -> Result<()> {
    make_topic(endpoint, queue).await?;
    let policy = subscribed.policy.map(|(topic, limit)| {
        let topic = full(&format!("topics/{topic}"));
        json!({ "deadLetterTopic": topic, "maxDeliveryAttempts": limit })
    });
    let mut input = json!({
        "topic": full(&format!("topics/{queue}")),
        "ackDeadlineSeconds": subscribed.lease.as_secs(),
        "enableMessageOrdering": subscribed.ordered,
    });
    if let Some((input, policy)) = input.as_object_mut().zip(policy) {
        input.insert("deadLetterPolicy".to_owned(), policy);
    }
    call(endpoint, "PUT", &format!("subscriptions/{queue}"), input).await?;
    Ok(())
}

/// Publishes. Headers are text, and a body needs no encoding of ours.
pub(super) async fn send(endpoint: &str, queue: &str, message: Outgoing) -> Result<()> {
    ensure!(message.stamp.is_none(), "a copy is the host's to send");
    let attributes = message.headers.iter().map(attribute).collect::<Result<Map<_, _>>>()?;
    let mut sent = json!({ "data": STANDARD.encode(&message.body), "attributes": attributes });
    if let Some((sent, key)) = sent.as_object_mut().zip(message.ordering_key) {
        sent.insert("orderingKey".to_owned(), key.into());
    }
    let topic = format!("topics/{queue}:publish");
    call(endpoint, "POST", &topic, json!({ "messages": [sent] })).await?;
    Ok(())
}

fn attribute((name, value): (&str, &HeaderValue)) -> Result<(String, Value)> {
    let text = match value {
        HeaderValue::Text(text) | HeaderValue::Number(text) => text.as_str(),
        HeaderValue::Binary(_) => anyhow::bail!("the attribute {name} can't be bytes"),
    };
    Ok((name.to_owned(), text.into()))
}

/// The one message of a queue.
pub(super) async fn read(endpoint: &str, queue: &str) -> Result<Foreign> {
    let subscription = format!("subscriptions/{queue}:pull");
    let input = json!({ "maxMessages": 10, "returnImmediately": true });
    let answer = call(endpoint, "POST", &subscription, input).await?;
    let message = answer.pointer("/receivedMessages/0/message").context("the queue is empty")?;
    let data = message.get("data").and_then(Value::as_str).unwrap_or_default();
    let attributes = message.get("attributes").and_then(Value::as_object);
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Ok(Foreign {
        body: String::from_utf8(STANDARD.decode(data)?)?,
        metadata: attributes.into_iter().flatten().filter_map(text).collect(),
    })
}
