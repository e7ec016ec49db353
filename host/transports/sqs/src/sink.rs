use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};

use aws_sdk_sqs::types::QueueAttributeName;
use tokio::sync::OnceCell;

use crate::calls::{Fault, Kind, bounded};
use crate::name::QueueName;
use crate::outgoing::{Shape, Wire, fit};
use crate::provision::{self, Target};
use crate::{Sqs, Timeouts};

/// What counts as a message of the destination.
const COUNTED: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
];

/// One queue, written to.
pub(crate) struct SqsSink {
    client: aws_sdk_sqs::Client,
    /// As configured.
    queue: String,
    name: QueueName,
    shape: Shape,
    /// Looked up by the first publish where it was not there at start-up.
    url: OnceCell<String>,
    timeouts: Timeouts,
}

impl SqsSink {
    pub(crate) fn new(sqs: &Sqs, queue: String, target: Target) -> Self {
        Self {
            client: sqs.work.clone(),
            shape: Shape { fifo: target.name.is_fifo(), limit: target.limit },
            queue,
            name: target.name,
            url: OnceCell::new_with(target.url),
            timeouts: sqs.timeouts,
        }
    }

    async fn url(&self) -> Result<&str, PublishError> {
        let look_up =
            || async { provision::look_up(&self.client, &self.name, self.timeouts.publish).await };
        match self.url.get_or_try_init(look_up).await {
            Ok(url) => Ok(url),
            Err(fault) => Err(self.error(fault)),
        }
    }

    async fn send(&self, message: Outgoing) -> Result<String, PublishError> {
        let refused = |text: String| PublishError::Refused(self.queue.clone(), text);
        let wire = fit(message, self.shape).map_err(refused)?;
        let request = self.request(self.url().await?, wire).map_err(refused)?;
        let answer = bounded(self.timeouts.publish, request.send()).await;
        let answer = answer.map_err(|fault| self.error(fault))?;
        answer.message_id.ok_or_else(|| {
            let text = "the answer has no message id".to_owned();
            PublishError::Unavailable(self.queue.clone(), text)
        })
    }

    fn request(
        &self,
        url: &str,
        wire: Wire,
    ) -> Result<aws_sdk_sqs::operation::send_message::builders::SendMessageFluentBuilder, String>
    {
        let mut request = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(wire.body)
            .set_message_group_id(wire.group)
            .set_message_deduplication_id(wire.deduplication);
        for attribute in wire.attributes {
            let (name, value) = attribute.into_sdk().map_err(|error| error.to_string())?;
            request = request.message_attributes(name, value);
        }
        Ok(request)
    }

    async fn count(&self) -> Result<Depth, PublishError> {
        let call = self
            .client
            .get_queue_attributes()
            .queue_url(self.url().await?)
            .set_attribute_names(Some(COUNTED.to_vec()))
            .send();
        let answer = bounded(self.timeouts.admin, call).await;
        let found = answer.map_err(|fault| self.error(fault))?.attributes.unwrap_or_default();
        let counts = COUNTED.iter().filter_map(|name| found.get(name)?.parse::<u64>().ok());
        let messages = counts.reduce(u64::saturating_add);
        // SQS tells the age of the oldest message to CloudWatch alone.
        Ok(Depth { messages, oldest_age: None })
    }

    fn error(&self, fault: Fault) -> PublishError {
        let (queue, text) = (self.queue.clone(), fault.text);
        match fault.kind {
            Kind::Unavailable | Kind::Throttled => PublishError::Unavailable(queue, text),
            Kind::Missing => PublishError::Missing(queue, text),
            Kind::Denied | Kind::Gone | Kind::Sender => PublishError::Refused(queue, text),
        }
    }
}

impl Sink for SqsSink {
    fn name(&self) -> &str {
        &self.queue
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(self.send(message))
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(self.count())
    }
}
