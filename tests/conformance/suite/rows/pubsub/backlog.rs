//! How many messages a subscription has, told by Pub/Sub itself.
//!
//! No call says it. But a snapshot of a subscription holds what it has not acknowledged, leased and delayed messages
//! included, and a second subscription of the same topic that is set to the snapshot hands out exactly that. So each
//! queue has such a second subscription from the beginning; nothing of it is ever acknowledged, and the first one
//! notices nothing. A host could not do it: it makes resources, and takes five calls.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};
use serde_json::{Value, json};

use super::foreign::{call, full};

/// How many messages one pull may bring.
const PULL: u32 = 1_000;

/// What counts.
fn probe(queue: &str) -> String {
    format!("{queue}-backlog")
}

/// Makes the second subscription of a queue, which must have no message yet.
pub(super) async fn watch(endpoint: &str, queue: &str) -> Result<()> {
    let input = json!({ "topic": full(&format!("topics/{queue}")), "ackDeadlineSeconds": 600 });
    call(endpoint, "PUT", &format!("subscriptions/{}", probe(queue)), input).await?;
    Ok(())
}

/// The backlog of one queue. It is no destination: nothing can be published to it.
pub(super) struct Backlog {
    endpoint: String,
    queue: String,
}

impl Backlog {
    pub(super) fn new(endpoint: &str, queue: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), queue: queue.to_owned() }
    }

    async fn call(&self, method: &str, resource: &str, input: Value) -> Result<Value> {
        call(&self.endpoint, method, resource, input).await
    }

    async fn count(&self) -> Result<u64> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let snapshot = format!("snapshots/{}-{}", self.queue, NEXT.fetch_add(1, Ordering::SeqCst));
        let probe = format!("subscriptions/{}", probe(&self.queue));
        let of = json!({ "subscription": full(&format!("subscriptions/{}", self.queue)) });
        self.call("PUT", &snapshot, of).await?;
        let to = json!({ "snapshot": full(&snapshot) });
        self.call("POST", &format!("{probe}:seek"), to).await?;
        let mut ids = BTreeSet::new();
        while self.pull(&probe, &mut ids).await? > 0 {}
        self.call("DELETE", &snapshot, Value::Null).await?;
        Ok(ids.len() as u64)
    }

    /// Pulls once, and takes note of the messages that came.
    async fn pull(&self, probe: &str, ids: &mut BTreeSet<String>) -> Result<usize> {
        let input = json!({ "maxMessages": PULL, "returnImmediately": true });
        let answer = self.call("POST", &format!("{probe}:pull"), input).await?;
        let received = answer.get("receivedMessages").and_then(Value::as_array);
        let received = received.map(Vec::as_slice).unwrap_or_default();
        for message in received {
            let id = message.pointer("/message/messageId").and_then(Value::as_str);
            ids.insert(id.context("a message has an id")?.to_owned());
        }
        Ok(received.len())
    }
}

impl Sink for Backlog {
    fn name(&self) -> &str {
        &self.queue
    }

    fn publish(&self, _: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        let refused = PublishError::Refused(self.queue.clone(), "it only counts".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async {
            let unavailable = |error: anyhow::Error| {
                PublishError::Unavailable(self.queue.clone(), format!("{error:#}"))
            };
            let messages = self.count().await.map_err(unavailable)?;
            Ok(Depth { messages: Some(messages), oldest_age: None })
        })
    }
}
