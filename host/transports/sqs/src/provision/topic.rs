//! Topics and their subscriptions.

use aws_sdk_sns::types::Subscription;
use aws_sdk_sqs::types::QueueAttributeName;

use super::TopicName;
use super::policy::{allowing, allows};
use super::queue::{Found, Queues};
use crate::calls::{Kind, bounded};
use crate::{Envelope, ProvisionError, SourceSpec, Sqs};

const RAW: &str = "RawMessageDelivery";

/// SNS gives this in place of the ARN until whoever owns the queue has confirmed.
const PENDING: &str = "PendingConfirmation";

/// A topic has at most so many pages of subscriptions that are looked through, of 100 each.
const MOST_PAGES: usize = 1_000;

/// Topics on behalf of one configured queue, which errors name.
pub(crate) struct Topics<'a> {
    pub(crate) sqs: &'a Sqs,
    pub(crate) configured: &'a str,
    pub(crate) spec: &'a SourceSpec,
}

impl Topics<'_> {
    /// Sees to it that the topic feeds the queue, and says how it does not. Under `create` a missing topic, a
    /// missing subscription and a missing access policy are made; nothing that is set is edited.
    pub(crate) async fn ensure(
        &self,
        topic: &TopicName,
        queue: &Found,
        create: bool,
    ) -> Result<Vec<String>, ProvisionError> {
        let arn = match topic {
            TopicName::Name(name) if create => self.create(name, topic.is_fifo()).await?,
            TopicName::Name(name) => sibling(&queue.arn(), name),
            TopicName::Arn(arn) => arn.clone(),
        };
        if !self.exists(&arn).await? {
            return Ok(vec![format!("topic {arn} does not exist")]);
        }
        let access = self.ensure_access(&arn, queue, create).await?;
        let subscription = self.ensure_subscription(&arn, &queue.arn(), create).await?;
        Ok(access.into_iter().chain(subscription).collect())
    }

    async fn create(&self, name: &str, fifo: bool) -> Result<String, ProvisionError> {
        let mut call = self.sqs.topics.create_topic().name(name);
        if fifo {
            call = call.attributes("FifoTopic", "true");
        }
        let answer = bounded(self.sqs.timeouts.admin, call.send()).await;
        let answer = answer.map_err(|it| self.error("CreateTopic", it))?;
        Ok(answer.topic_arn.unwrap_or_default())
    }

    async fn exists(&self, arn: &str) -> Result<bool, ProvisionError> {
        let call = self.sqs.topics.get_topic_attributes().topic_arn(arn).send();
        match bounded(self.sqs.timeouts.admin, call).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.kind == Kind::Missing => Ok(false),
            Err(fault) => Err(self.error("GetTopicAttributes", fault)),
        }
    }

    async fn ensure_access(
        &self,
        topic: &str,
        queue: &Found,
        create: bool,
    ) -> Result<Option<String>, ProvisionError> {
        let policy = queue.attribute(&QueueAttributeName::Policy);
        if policy.is_some_and(|policy| allows(policy, topic)) {
            return Ok(None);
        }
        let wanted = allowing(topic, &queue.arn());
        if !create || policy.is_some() {
            return Ok(Some(format!(
                "the queue's Policy does not let topic {topic} send; it needs the statement of {wanted}"
            )));
        }
        let queues = Queues { sqs: self.sqs, configured: self.configured };
        queues.set(&queue.url, QueueAttributeName::Policy, wanted).await?;
        Ok(None)
    }

    async fn ensure_subscription(
        &self,
        topic: &str,
        queue: &str,
        create: bool,
    ) -> Result<Option<String>, ProvisionError> {
        let raw = self.spec.envelope == Envelope::Raw;
        let Some(found) = self.subscription(topic, queue).await? else {
            if !create {
                return Ok(Some(format!("topic {topic} has no subscription of queue {queue}")));
            }
            self.subscribe(topic, queue, raw).await?;
            return Ok(None);
        };
        let arn = found.subscription_arn().unwrap_or(PENDING);
        if !arn.starts_with("arn:") {
            return Ok(Some(format!("the subscription of queue {queue} is not yet confirmed")));
        }
        let is_raw = self.is_raw(arn).await?;
        Ok((is_raw != raw).then(|| {
            format!("{RAW} of subscription {arn} is {is_raw} where the configuration says {raw}")
        }))
    }

    async fn subscription(
        &self,
        topic: &str,
        queue: &str,
    ) -> Result<Option<Subscription>, ProvisionError> {
        let mut token = None;
        for _ in 0..MOST_PAGES {
            let call = self.sqs.topics.list_subscriptions_by_topic().topic_arn(topic);
            let call = bounded(self.sqs.timeouts.admin, call.set_next_token(token).send());
            let page = call.await.map_err(|it| self.error("ListSubscriptionsByTopic", it))?;
            let ours =
                |it: &Subscription| it.protocol() == Some("sqs") && it.endpoint() == Some(queue);
            if let Some(found) = page.subscriptions.unwrap_or_default().into_iter().find(ours) {
                return Ok(Some(found));
            }
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                break;
            }
        }
        Ok(None)
    }

    async fn subscribe(&self, topic: &str, queue: &str, raw: bool) -> Result<(), ProvisionError> {
        let call = self
            .sqs
            .topics
            .subscribe()
            .topic_arn(topic)
            .protocol("sqs")
            .endpoint(queue)
            .attributes(RAW, raw.to_string())
            .return_subscription_arn(true)
            .send();
        let answer = bounded(self.sqs.timeouts.admin, call).await;
        answer.map_err(|it| self.error("Subscribe", it))?;
        tracing::info!(topic, queue, "queue subscribed to topic");
        Ok(())
    }

    async fn is_raw(&self, subscription: &str) -> Result<bool, ProvisionError> {
        let call = self.sqs.topics.get_subscription_attributes().subscription_arn(subscription);
        let answer = bounded(self.sqs.timeouts.admin, call.send()).await;
        let answer = answer.map_err(|it| self.error("GetSubscriptionAttributes", it))?;
        let attributes = answer.attributes.unwrap_or_default();
        Ok(attributes.get(RAW).is_some_and(|value| value.eq_ignore_ascii_case("true")))
    }

    fn error(&self, call: &'static str, fault: crate::calls::Fault) -> ProvisionError {
        ProvisionError::from_fault(self.configured, call, fault)
    }
}

/// The ARN of a topic of that name beside a queue: in its partition, region and account.
fn sibling(queue_arn: &str, topic: &str) -> String {
    let parts: Vec<&str> = queue_arn.split(':').collect();
    match parts.as_slice() {
        [arn, partition, _, region, account, _] => {
            format!("{arn}:{partition}:sns:{region}:{account}:{topic}")
        }
        _ => topic.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_by_name_is_beside_its_queue() {
        let arn = sibling("arn:aws-cn:sqs:cn-north-1:123456789012:orders", "events.fifo");
        assert_eq!(arn, "arn:aws-cn:sns:cn-north-1:123456789012:events.fifo");
    }
}
