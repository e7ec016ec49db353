//! A topic, written to.

use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};

use crate::{ProvisionError, Pubsub, SinkSpec};

/// One topic, written to.
pub(crate) struct PubsubSink {
    /// As configured.
    topic: String,
}

impl PubsubSink {
    #[expect(clippy::unused_async, reason = "to come")]
    pub(crate) async fn new(_: &Pubsub, spec: &SinkSpec) -> Result<Self, ProvisionError> {
        Ok(Self { topic: spec.topic.clone() })
    }
}

impl Sink for PubsubSink {
    fn name(&self) -> &str {
        &self.topic
    }

    fn publish(&self, _: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async { Err(PublishError::Refused(self.topic.clone(), "to come".to_owned())) })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async { Ok(Depth::default()) })
    }
}
