//! Queues: finding, making and comparing.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value, json};

use super::check::Redrive;
use super::look_up;
use crate::calls::{Kind, bounded};
use crate::name::QueueName;
use crate::{ProvisionError, Sqs};

type Attributes = HashMap<QueueAttributeName, String>;

/// Queues on behalf of one configured queue, which errors name.
pub(crate) struct Queues<'a> {
    pub(crate) sqs: &'a Sqs,
    pub(crate) configured: &'a str,
}

/// What a queue must be like, where anything is asked of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) retention: Option<Duration>,
    pub(crate) redrive: Option<&'a Redrive>,
}

/// A queue that exists.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) url: String,
    attributes: Attributes,
}

impl Queues<'_> {
    /// The URL; none where the queue does not exist. A URL is taken as it is.
    pub(crate) async fn url(&self, name: &QueueName) -> Result<Option<String>, ProvisionError> {
        match look_up(&self.sqs.work, name, self.sqs.timeouts.admin).await {
            Ok(url) => Ok(Some(url)),
            Err(fault) if fault.kind == Kind::Missing => Ok(None),
            Err(fault) => Err(ProvisionError::from_fault(self.configured, "GetQueueUrl", fault)),
        }
    }

    /// The queue as it is; none where it does not exist.
    pub(crate) async fn find(&self, name: &QueueName) -> Result<Option<Found>, ProvisionError> {
        let Some(url) = self.url(name).await? else { return Ok(None) };
        let call = self
            .sqs
            .work
            .get_queue_attributes()
            .queue_url(&url)
            .attribute_names(QueueAttributeName::All)
            .send();
        match bounded(self.sqs.timeouts.admin, call).await {
            Ok(answer) => {
                Ok(Some(Found { url, attributes: answer.attributes.unwrap_or_default() }))
            }
            Err(fault) if fault.kind == Kind::Missing => Ok(None),
            Err(fault) => {
                Err(ProvisionError::from_fault(self.configured, "GetQueueAttributes", fault))
            }
        }
    }

    /// The queue as it is. Under `create` a missing one is made as wanted, and one without a redrive policy is
    /// given the one that is wanted; nothing that is set is edited.
    pub(crate) async fn ensure(
        &self,
        name: &QueueName,
        wanted: &Wanted<'_>,
        create: bool,
    ) -> Result<Option<Found>, ProvisionError> {
        let found = self.find(name).await?;
        let (found, name) = match (found, name) {
            (Some(found), _) => (found, name),
            (None, QueueName::Name(bare)) if create => {
                self.create(bare, wanted).await?;
                return self.find(name).await;
            }
            (None, _) => return Ok(None),
        };
        match wanted.redrive {
            Some(redrive)
                if create && found.attribute(&QueueAttributeName::RedrivePolicy).is_none() =>
            {
                self.set(&found.url, QueueAttributeName::RedrivePolicy, redrive.json()).await?;
                self.find(name).await
            }
            _ => Ok(Some(found)),
        }
    }

    async fn create(&self, bare: &str, wanted: &Wanted<'_>) -> Result<(), ProvisionError> {
        let call = self
            .sqs
            .work
            .create_queue()
            .queue_name(bare)
            .set_attributes(Some(wanted.attributes(bare)))
            .send();
        match bounded(self.sqs.timeouts.admin, call).await {
            Ok(_) => {
                tracing::info!(queue = bare, "queue made");
                Ok(())
            }
            // Someone else made it meanwhile, in their way; what differs is found next.
            Err(fault) if is_already_there(&fault.code) => Ok(()),
            Err(fault) => Err(ProvisionError::from_fault(self.configured, "CreateQueue", fault)),
        }
    }

    pub(crate) async fn set(
        &self,
        url: &str,
        name: QueueAttributeName,
        value: String,
    ) -> Result<(), ProvisionError> {
        let call =
            self.sqs.work.set_queue_attributes().queue_url(url).attributes(name, value).send();
        match bounded(self.sqs.timeouts.admin, call).await {
            Ok(_) => Ok(()),
            Err(fault) => {
                Err(ProvisionError::from_fault(self.configured, "SetQueueAttributes", fault))
            }
        }
    }
}

fn is_already_there(code: &str) -> bool {
    code.ends_with("QueueNameExists") || code.ends_with("QueueAlreadyExists")
}

impl Wanted<'_> {
    fn attributes(&self, bare: &str) -> Attributes {
        let mut attributes = Attributes::new();
        if bare.ends_with(".fifo") {
            attributes.insert(QueueAttributeName::FifoQueue, "true".to_owned());
        }
        if let Some(retention) = self.retention {
            let seconds = retention.as_secs().to_string();
            attributes.insert(QueueAttributeName::MessageRetentionPeriod, seconds);
        }
        if let Some(redrive) = self.redrive {
            attributes.insert(QueueAttributeName::RedrivePolicy, redrive.json());
        }
        attributes
    }
}

impl Redrive {
    fn json(&self) -> String {
        json!({ "deadLetterTargetArn": self.target, "maxReceiveCount": self.limit }).to_string()
    }

    /// The count is a number or a text, depending on who wrote the policy.
    fn parse(text: &str) -> Option<Self> {
        let policy: Value = serde_json::from_str(text).ok()?;
        let count = policy.get("maxReceiveCount")?;
        let number = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
        let target = policy.get("deadLetterTargetArn")?.as_str()?.to_owned();
        Some(Self { limit: number.try_into().ok()?, target })
    }
}

impl Found {
    pub(crate) fn attribute(&self, name: &QueueAttributeName) -> Option<&str> {
        self.attributes.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self, name: &QueueAttributeName) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    pub(crate) fn arn(&self) -> String {
        self.attribute(&QueueAttributeName::QueueArn).unwrap_or_default().to_owned()
    }

    /// The redrive policy, where there is one that says something.
    pub(crate) fn redrive(&self) -> Option<Redrive> {
        self.attribute(&QueueAttributeName::RedrivePolicy).and_then(Redrive::parse)
    }

    /// How it differs from what is wanted, each difference with both sides.
    pub(crate) fn differences(&self, name: &QueueName, wanted: &Wanted<'_>) -> Vec<String> {
        let differences = [
            self.other_kind(name),
            self.other_retention(wanted.retention),
            wanted.redrive.and_then(|redrive| self.other_redrive(redrive)),
        ];
        let bare = name.bare();
        differences.into_iter().flatten().map(|text| format!("queue {bare}: {text}")).collect()
    }

    fn other_kind(&self, name: &QueueName) -> Option<String> {
        let fifo = self.attribute(&QueueAttributeName::FifoQueue) == Some("true");
        (fifo != name.is_fifo())
            .then(|| format!("FifoQueue is {fifo} where the name says {}", name.is_fifo()))
    }

    fn other_retention(&self, wanted: Option<Duration>) -> Option<String> {
        let wanted = wanted?.as_secs();
        let found = self.number(&QueueAttributeName::MessageRetentionPeriod)?;
        (found != wanted).then(|| {
            format!("MessageRetentionPeriod is {found} s where the configuration says {wanted} s")
        })
    }

    fn other_redrive(&self, wanted: &Redrive) -> Option<String> {
        let Some(found) = self.redrive() else {
            return Some(
                "RedrivePolicy is not set where the configuration asks for one".to_owned(),
            );
        };
        let mut parts = Vec::new();
        if found.limit != wanted.limit {
            parts.push(format!("maxReceiveCount is {} and not {}", found.limit, wanted.limit));
        }
        if found.target != wanted.target {
            parts
                .push(format!("deadLetterTargetArn is {} and not {}", found.target, wanted.target));
        }
        (!parts.is_empty()).then(|| format!("RedrivePolicy: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redrive_policy_is_read_however_it_is_written() {
        for text in [
            r#"{"deadLetterTargetArn":"arn:x","maxReceiveCount":5}"#,
            r#"{"deadLetterTargetArn":"arn:x","maxReceiveCount":"5"}"#,
        ] {
            let expected = Redrive { limit: 5, target: "arn:x".into() };
            assert_eq!(Redrive::parse(text), Some(expected.clone()));
            assert_eq!(Redrive::parse(&expected.json()), Some(expected));
        }
        for wrong in ["", "{}", r#"{"deadLetterTargetArn":"arn:x","maxReceiveCount":"many"}"#] {
            assert_eq!(Redrive::parse(wrong), None, "{wrong}");
        }
    }
}
