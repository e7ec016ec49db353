use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};

use crate::{Rocketmq, SinkSpec};

pub(crate) struct TopicSink {
    topic: String,
}

impl TopicSink {
    pub(crate) fn new(_: &Rocketmq, spec: &SinkSpec) -> Self {
        Self { topic: spec.topic.clone() }
    }
}

impl Sink for TopicSink {
    fn name(&self) -> &str {
        &self.topic
    }

    fn publish(&self, _: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(async { Err(PublishError::Unavailable(self.topic.clone(), "unwritten".into())) })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async { Ok(Depth::default()) })
    }
}
