//! A topic, written to.

use google_cloud_pubsub::client::BasePublisher;
use google_cloud_pubsub::error::PublishError as Unpublished;
use google_cloud_pubsub::model;
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};

use crate::calls::{Fault, Kind, of_library, text_of};
use crate::outgoing::{Wire, fit};
use crate::{ProvisionError, Pubsub, SinkSpec, Timeouts};

/// One topic, written to.
pub(crate) struct PubsubSink {
    /// As configured.
    name: String,
    /// The full name.
    topic: String,
    publisher: BasePublisher,
    timeouts: Timeouts,
}

impl PubsubSink {
    pub(crate) async fn new(pubsub: &Pubsub, spec: &SinkSpec) -> Result<Self, ProvisionError> {
        let topic = pubsub.topic(&spec.topic);
        let publisher = pubsub
            .publisher()
            .await
            .map_err(|fault| ProvisionError::from_fault(&topic, "making a publisher", fault))?;
        Ok(Self { name: spec.topic.clone(), topic, publisher, timeouts: pubsub.timeouts })
    }

    async fn send(&self, message: Outgoing) -> Result<String, PublishError> {
        let refused = |text: String| PublishError::Refused(self.name.clone(), text);
        let message = model_of(fit(message).map_err(refused)?);
        // One for each message. The library keeps a task for every ordering key that a publisher ever saw, and
        // after a failure takes nothing more of that key; messages of a key would also wait for one another.
        let publisher = self.publisher.publisher(&self.topic).set_message_count_threshold(1_u32);
        let call = publisher.build().publish(message);
        let limit = self.timeouts.publish;
        let answer = match tokio::time::timeout(limit, call).await {
            Ok(answer) => answer.map_err(fault_of),
            Err(_) => Err(Fault::unavailable(format!("no confirmation within {limit:?}"))),
        };
        answer.map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: Fault) -> PublishError {
        let (topic, text) = (self.name.clone(), fault.text);
        match fault.kind {
            Kind::Unavailable | Kind::Throttled => PublishError::Unavailable(topic, text),
            Kind::Missing => PublishError::Missing(topic, text),
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
        _ => Fault::unavailable(text_of(&error)),
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
