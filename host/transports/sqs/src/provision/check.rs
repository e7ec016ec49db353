//! What a specification asks for that can't be, found without a call.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{LONGEST_RETENTION, QueueName, TopicName};
use crate::{NativeRedrive, SinkSpec, SourceSpec};

const SHORTEST_RETENTION: Duration = Duration::from_secs(60);

/// What SQS takes as `maxReceiveCount`.
const RECEIVE_COUNTS: RangeInclusive<u32> = 1..=1_000;

/// A redrive policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redrive {
    /// `maxReceiveCount`.
    pub(crate) limit: u32,
    /// The ARN of the dead-letter queue.
    pub(crate) target: String,
}

/// A specification whose names are names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) queue: QueueName,
    pub(crate) topic: Option<TopicName>,
    pub(crate) dead_letter: Option<QueueName>,
}

/// Reads a source's names.
///
/// # Errors
/// Everything that can't be.
pub(crate) fn source(spec: &SourceSpec, region: &str) -> Result<Plan, Vec<String>> {
    let mut problems = Vec::new();
    let queue = keep(QueueName::parse(&spec.queue), &mut problems);
    let topic = spec.topic.as_deref().map(TopicName::parse);
    let topic = topic.and_then(|topic| keep(topic, &mut problems));
    let native = spec.native.as_ref();
    let dead_letter = native.map(|native| QueueName::parse(&native.dead_letter));
    let dead_letter = dead_letter.and_then(|name| keep(name, &mut problems));
    problems.extend(retention(spec.retention));
    problems.extend(native.and_then(receive_count));
    problems.extend(queue.as_ref().and_then(|queue| elsewhere(queue, region)));
    if let (Some(queue), Some(topic)) = (&queue, &topic) {
        problems.extend(feeding(queue, topic));
    }
    if let (Some(queue), Some(dead_letter)) = (&queue, &dead_letter) {
        problems.extend(moving(queue, dead_letter));
    }
    match queue {
        Some(queue) if problems.is_empty() => Ok(Plan { queue, topic, dead_letter }),
        _ => Err(problems),
    }
}

/// Reads a sink's name.
///
/// # Errors
/// Everything that can't be.
pub(crate) fn sink(spec: &SinkSpec, region: &str) -> Result<QueueName, Vec<String>> {
    let mut problems = Vec::new();
    let queue = keep(QueueName::parse(&spec.queue), &mut problems);
    problems.extend(retention(spec.retention));
    problems.extend(queue.as_ref().and_then(|queue| elsewhere(queue, region)));
    match queue {
        Some(queue) if problems.is_empty() => Ok(queue),
        _ => Err(problems),
    }
}

fn keep<T>(parsed: Result<T, String>, problems: &mut Vec<String>) -> Option<T> {
    parsed.map_err(|problem| problems.push(problem)).ok()
}

fn retention(retention: Option<Duration>) -> Option<String> {
    let retention = retention?;
    let allowed = (SHORTEST_RETENTION..=LONGEST_RETENTION).contains(&retention);
    (!allowed || retention.subsec_nanos() > 0).then(|| {
        format!("retention {retention:?} is not allowed: use whole seconds from 60 s to 14 days")
    })
}

fn receive_count(native: &NativeRedrive) -> Option<String> {
    let count = native.max_receive_count;
    (!RECEIVE_COUNTS.contains(&count))
        .then(|| format!("max_receive_count {count} is not allowed: use 1 to 1000"))
}

fn elsewhere(queue: &QueueName, ours: &str) -> Option<String> {
    match queue {
        QueueName::Arn { region, name, .. } if region != ours => {
            Some(format!("{name} is in region {region} and the transport in {ours}"))
        }
        _ => None,
    }
}

fn feeding(queue: &QueueName, topic: &TopicName) -> Option<String> {
    (queue.is_fifo() && !topic.is_fifo()).then(|| {
        "a topic that is not FIFO can't feed a FIFO queue; use a topic that ends in .fifo".into()
    })
}

fn moving(queue: &QueueName, dead_letter: &QueueName) -> Option<String> {
    if queue.bare() == dead_letter.bare() {
        return Some("the dead-letter queue of its redrive policy is the queue itself".to_owned());
    }
    (queue.is_fifo() != dead_letter.is_fifo()).then(|| {
        "the dead-letter queue of its redrive policy must be FIFO exactly where the queue is".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NativeRedrive, Provision};

    #[test]
    fn everything_that_cannot_be_is_said_at_once() {
        let mut spec = SourceSpec::new("orders.fifo", Provision::Create);
        spec.topic = Some("orders".into());
        spec.retention = Some(Duration::from_secs(1));
        spec.native = Some(NativeRedrive { max_receive_count: 0, dead_letter: "dead".into() });
        let problems = source(&spec, "eu-west-1").expect_err("nothing of it can be");
        assert_eq!(problems.len(), 4, "{problems:?}");
        spec.native = Some(NativeRedrive { max_receive_count: 1, dead_letter: "a b".into() });
        spec.queue = "arn:aws:sqs:us-east-1:1:orders.fifo".into();
        let problems = source(&spec, "eu-west-1").expect_err("nothing of it can be");
        assert!(problems.iter().any(|text| text.contains("us-east-1")), "{problems:?}");
        assert!(problems.iter().any(|text| text.contains("a b")), "{problems:?}");
    }

    #[test]
    fn what_can_be_is_planned() {
        let mut spec = SourceSpec::new("orders", Provision::Create);
        spec.topic = Some("orders".into());
        spec.native = Some(NativeRedrive { max_receive_count: 5, dead_letter: "dead".into() });
        spec.retention = Some(LONGEST_RETENTION);
        assert!(source(&spec, "eu-west-1").is_ok_and(|plan| plan.dead_letter.is_some()));
        assert!(sink(&SinkSpec::new("orders", Provision::Assume), "eu-west-1").is_ok());
        spec.native = Some(NativeRedrive { max_receive_count: 5, dead_letter: "orders".into() });
        assert!(source(&spec, "eu-west-1").is_err());
    }
}
