//! Making and checking queues, topics and subscriptions before they are used.

mod check;
mod policy;
mod queue;
mod topic;

use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;

use crate::calls::{Fault, bounded};
use crate::name::{QueueName, TopicName};
use crate::{NativeRedrive, Provision, ProvisionError, QueueFacts, SinkSpec, SourceSpec, Sqs};
use check::Redrive;
use queue::{Found, Queues};

/// How long SQS keeps a message at most; rejected messages are kept as long as can be.
const LONGEST_RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The same keeps a dead-letter queue's messages that a redrive policy moves.
const REJECTED_RETENTION: Duration = LONGEST_RETENTION;

/// A destination that was looked up.
pub(crate) struct Target {
    pub(crate) name: QueueName,
    pub(crate) url: Option<String>,
    /// The most bytes of one message, where it was asked for.
    pub(crate) limit: Option<usize>,
}

/// Provisions a source and gives its URL.
pub(crate) async fn source(sqs: &Sqs, spec: &SourceSpec) -> Result<String, ProvisionError> {
    let plan = check::source(spec, sqs.region.as_ref())
        .map_err(|problems| ProvisionError::Invalid { queue: spec.queue.clone(), problems })?;
    let queues = Queues { sqs, configured: &spec.queue };
    if spec.provision == Provision::Assume {
        return queues.url(&plan.queue).await?.ok_or_else(|| missing(&spec.queue));
    }
    let create = spec.provision == Provision::Create;
    let mut differences = Vec::new();
    let redrive = redrive(&queues, &plan, spec.native.as_ref(), create, &mut differences).await?;
    let wanted = queue::Wanted { retention: spec.retention, redrive: redrive.as_ref() };
    let found = queues.ensure(&plan.queue, &wanted, create).await?;
    differences.extend(found.iter().flat_map(|found| found.differences(&plan.queue, &wanted)));
    match (found, &plan.topic) {
        (None, _) => differences.push(format!("queue {} does not exist", spec.queue)),
        (Some(found), None) => return fine(&spec.queue, found.url, differences),
        (Some(found), Some(topic)) => {
            let topics = topic::Topics { sqs, configured: &spec.queue, spec };
            differences.extend(topics.ensure(topic, &found, create).await?);
            return fine(&spec.queue, found.url, differences);
        }
    }
    Err(ProvisionError::Differs { queue: spec.queue.clone(), differences })
}

fn fine(queue: &str, url: String, differences: Vec<String>) -> Result<String, ProvisionError> {
    if differences.is_empty() {
        return Ok(url);
    }
    Err(ProvisionError::Differs { queue: queue.to_owned(), differences })
}

fn missing(queue: &str) -> ProvisionError {
    let differences = vec![format!("queue {queue} does not exist")];
    ProvisionError::Differs { queue: queue.to_owned(), differences }
}

/// The policy that the queue must have, with the ARN of its dead-letter queue; none where none is asked for, or
/// where that queue is missing.
async fn redrive(
    queues: &Queues<'_>,
    plan: &check::Plan,
    native: Option<&NativeRedrive>,
    create: bool,
    differences: &mut Vec<String>,
) -> Result<Option<Redrive>, ProvisionError> {
    let Some((native, name)) = native.zip(plan.dead_letter.as_ref()) else { return Ok(None) };
    let wanted = queue::Wanted { retention: create.then_some(REJECTED_RETENTION), redrive: None };
    let Some(found) = queues.ensure(name, &wanted, create).await? else {
        differences.push(format!("dead-letter queue {} does not exist", native.dead_letter));
        return Ok(None);
    };
    Ok(Some(Redrive { limit: native.max_receive_count, target: found.arn() }))
}

/// Provisions a sink.
pub(crate) async fn sink(sqs: &Sqs, spec: &SinkSpec) -> Result<Target, ProvisionError> {
    let name = check::sink(spec, sqs.region.as_ref())
        .map_err(|problems| ProvisionError::Invalid { queue: spec.queue.clone(), problems })?;
    let queues = Queues { sqs, configured: &spec.queue };
    if spec.provision == Provision::Assume {
        let url = queues.url(&name).await?;
        return Ok(Target { name, url, limit: None });
    }
    let create = spec.provision == Provision::Create;
    let retention = spec.retention.or_else(|| create.then_some(REJECTED_RETENTION));
    let made = queue::Wanted { retention, redrive: None };
    let found = queues.ensure(&name, &made, create).await?.ok_or_else(|| missing(&spec.queue))?;
    let asked = queue::Wanted { retention: spec.retention, redrive: None };
    let differences = found.differences(&name, &asked);
    let limit = found.number(&QueueAttributeName::MaximumMessageSize);
    let url = fine(&spec.queue, found.url, differences)?;
    Ok(Target { name, url: Some(url), limit: limit.and_then(|it| it.try_into().ok()) })
}

/// What the queue itself says.
pub(crate) async fn facts(sqs: &Sqs, queue: &str) -> Result<QueueFacts, ProvisionError> {
    let invalid =
        |problem| ProvisionError::Invalid { queue: queue.to_owned(), problems: vec![problem] };
    let name = QueueName::parse(queue).map_err(invalid)?;
    let queues = Queues { sqs, configured: queue };
    let found: Found = queues.find(&name).await?.ok_or_else(|| missing(queue))?;
    let redrive = found.redrive();
    Ok(QueueFacts {
        native_limit: redrive.as_ref().map(|it| it.limit),
        native_dead_letter: redrive.map(|it| it.target),
        retention: found
            .number(&QueueAttributeName::MessageRetentionPeriod)
            .map(Duration::from_secs),
    })
}

/// The URL of a queue.
pub(crate) async fn look_up(
    client: &aws_sdk_sqs::Client,
    name: &QueueName,
    limit: Duration,
) -> Result<String, Fault> {
    let (bare, account) = match name {
        QueueName::Url(url) => return Ok(url.clone()),
        QueueName::Name(name) => (name, None),
        QueueName::Arn { name, account, .. } => (name, Some(account.clone())),
    };
    let call =
        client.get_queue_url().queue_name(bare).set_queue_owner_aws_account_id(account).send();
    bounded(limit, call).await.map(|answer| answer.queue_url.unwrap_or_default())
}
