//! A topic, written to.

use std::sync::atomic::{AtomicBool, Ordering};

use google_cloud_pubsub::error::PublishError as Unpublished;
use google_cloud_pubsub::model;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};
use pumphouse_contract::{Outgoing, with_causes};

use crate::calls::{Fault, Kind, of_library};
use crate::outgoing::{Wire, fit};
use crate::{ProvisionError, Pubsub, SinkSpec, provision};

/// One topic, written to.
pub(crate) struct PubsubSink {
    /// As configured.
    name: String,
    /// The full name.
    topic: String,
    pubsub: Pubsub,
    /// It was not there. Whoever makes it then makes its subscription a moment later, and what is published in
    /// between would be confirmed and kept by nobody.
    missed: AtomicBool,
}

impl PubsubSink {
    pub(crate) fn new(pubsub: &Pubsub, spec: &SinkSpec) -> Self {
        let topic = pubsub.topic(&spec.topic);
        let missed = AtomicBool::new(false);
        Self { name: spec.topic.clone(), topic, pubsub: pubsub.clone(), missed }
    }

    async fn send(&self, message: Outgoing) -> Result<String, PublishError> {
        let refused = |text: String| PublishError::Refused(self.name.clone(), text);
        let message = model_of(fit(message).map_err(refused)?);
        let limit = self.pubsub.timeouts.publish;
        let answer = async {
            if self.missed.load(Ordering::Relaxed) {
                self.is_kept().await?;
            }
            self.ask(message).await.map_err(|fault| self.error(fault))
        };
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            Err(self.error(Fault::unavailable(format!("no confirmation within {limit:?}"))))
        })
    }

    /// Whether a topic that was missing has a subscription by now. Credentials that may not ask publish all the same.
    async fn is_kept(&self) -> Result<(), PublishError> {
        let limit = self.pubsub.timeouts.publish / 2;
        let kept = tokio::time::timeout(limit, provision::is_kept(&self.pubsub, &self.topic)).await;
        let unavailable = |text: String| PublishError::Unavailable(self.name.clone(), text);
        match kept {
            Ok(Ok(true) | Err(ProvisionError::Denied { .. })) => {
                self.missed.store(false, Ordering::Relaxed);
                Ok(())
            }
            Ok(Ok(false)) => Err(PublishError::Missing(
                self.name.clone(),
                "it has no subscription that would keep the message: make one".to_owned(),
            )),
            Ok(Err(error)) if error.is_retryable() => Err(unavailable(error.to_string())),
            Ok(Err(error)) => Err(PublishError::Missing(self.name.clone(), error.to_string())),
            Err(_) => Err(unavailable(format!("its subscriptions were not told within {limit:?}"))),
        }
    }

    async fn ask(&self, message: model::Message) -> Result<String, Fault> {
        let publisher = self.pubsub.publisher().await?;
        // One for each message. The library keeps a task for every ordering key that a publisher ever saw, and
        // after a failure takes nothing more of that key; messages of a key would also wait for one another.
        let publisher = publisher.publisher(&self.topic).set_message_count_threshold(1_u32);
        publisher.build().publish(message).await.map_err(fault_of)
    }

    fn error(&self, fault: Fault) -> PublishError {
        let (topic, text) = (self.name.clone(), fault.text);
        match fault.kind {
            Kind::Unavailable | Kind::Throttled => PublishError::Unavailable(topic, text),
            Kind::Missing => {
                self.missed.store(true, Ordering::Relaxed);
                PublishError::Missing(topic, text)
            }
            Kind::Denied | Kind::Sender => PublishError::Refused(topic, text),
        }
    }
}

fn model_of(wire: Wire) -> model::Message {
    model::Message::new()
        .set_data(wire.data)
        .set_attributes(wire.attributes)
        .set_ordering_key(wire.key)
}

fn fault_of(error: Unpublished) -> Fault {
    match &error {
        Unpublished::Rpc(error) => of_library(error),
        // It stopped, as at the end of the process, or it answered without an id.
        _ => Fault::unavailable(with_causes(&error)),
    }
}

impl Sink for PubsubSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(self.send(message))
    }

    /// Pub/Sub's API does not tell; the host's own rate stands in (S-7).
    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(std::future::ready(Ok(Depth::default())))
    }
}
