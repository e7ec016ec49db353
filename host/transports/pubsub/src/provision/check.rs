//! What a specification asks for that can't be, found without a call.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{NativeDeadLetter, Provision, Pubsub, RetryPolicy, SinkSpec, SourceSpec, name};

/// What Pub/Sub takes as `max_delivery_attempts`.
const ATTEMPTS: RangeInclusive<u32> = 5..=100;

/// What Pub/Sub takes as an acknowledgement deadline, in seconds.
const ACK_DEADLINES: RangeInclusive<u64> = 10..=600;

const LONGEST_BACKOFF: Duration = Duration::from_secs(600);

/// How many characters the id of a resource has.
const ID_LENGTHS: RangeInclusive<usize> = 3..=255;

/// A source whose names are full names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) subscription: String,
    pub(crate) topic: Option<String>,
    /// Where the service itself forwards to.
    pub(crate) policy: Option<Policy>,
}

/// A dead-letter policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The full name.
    pub(crate) topic: String,
    /// M.
    pub(crate) attempts: u32,
    /// The full name of the subscription that keeps what is forwarded, where none does yet.
    pub(crate) kept_by: String,
}

/// A sink whose names are full names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) topic: String,
    pub(crate) kept_by: String,
}

/// Reads a source.
///
/// # Errors
/// Everything that can't be.
pub(crate) fn source(pubsub: &Pubsub, spec: &SourceSpec) -> Result<Plan, Vec<String>> {
    let subscription = pubsub.subscription(&spec.subscription);
    let topic = spec.topic.as_deref().map(|topic| pubsub.topic(topic));
    let policy = spec.native.as_ref().map(|native| policy(pubsub, native));
    let plan = Plan { subscription, topic, policy };
    let problems: Vec<String> = [
        misnamed("subscriptions", &plan.subscription),
        plan.topic.as_deref().and_then(|topic| misnamed("topics", topic)),
        (spec.provision == Provision::Create && plan.topic.is_none())
            .then(|| "it can't be made without a topic: set its topic".to_owned()),
        plan.policy.as_ref().and_then(|policy| misnamed("topics", &policy.topic)),
        plan.policy.as_ref().and_then(|policy| circle(plan.topic.as_deref(), policy)),
        spec.native.as_ref().and_then(attempts),
        spec.retry.as_ref().and_then(backoffs),
    ]
    .into_iter()
    .flatten()
    .chain(spec.native.iter().flat_map(empty_members))
    .collect();
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

/// Reads a sink.
///
/// # Errors
/// Everything that can't be.
pub(crate) fn sink(pubsub: &Pubsub, spec: &SinkSpec) -> Result<Target, Vec<String>> {
    let topic = pubsub.topic(&spec.topic);
    let kept_by = spec.subscription.as_deref().unwrap_or(name::id(&topic));
    let target = Target { kept_by: pubsub.subscription(kept_by), topic };
    let misnamed = [misnamed("topics", &target.topic), misnamed("subscriptions", &target.kept_by)];
    let problems: Vec<String> = misnamed.into_iter().flatten().collect();
    if problems.is_empty() { Ok(target) } else { Err(problems) }
}

fn policy(pubsub: &Pubsub, native: &NativeDeadLetter) -> Policy {
    let topic = pubsub.topic(&native.dead_letter);
    let kept_by = pubsub.subscription(name::id(&topic));
    Policy { topic, attempts: native.max_delivery_attempts, kept_by }
}

/// The acknowledgement deadline that gives a lease: whole seconds, rounded up, within what the service takes.
pub(crate) fn ack_deadline(lease: Duration) -> u64 {
    let whole = lease.as_secs().saturating_add(u64::from(lease.subsec_nanos() > 0));
    whole.clamp(*ACK_DEADLINES.start(), *ACK_DEADLINES.end())
}

fn misnamed(collection: &str, full: &str) -> Option<String> {
    let parts: Vec<&str> = full.split('/').collect();
    let fine = matches!(parts.as_slice(), ["projects", project, kind, id]
        if !project.is_empty() && *kind == collection && is_id(id));
    (!fine).then(|| {
        format!(
            "{full} is no name: use an id of 3 to 255 letters, digits and -_.~+% that begins with a letter and not \
             with goog, or projects/PROJECT/{collection}/ID"
        )
    })
}

fn is_id(id: &str) -> bool {
    ID_LENGTHS.contains(&id.len())
        && id.starts_with(|first: char| first.is_ascii_alphabetic())
        && !id.starts_with("goog")
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+%".contains(&byte))
}

fn circle(topic: Option<&str>, policy: &Policy) -> Option<String> {
    (topic == Some(policy.topic.as_str()))
        .then(|| "the dead-letter topic of its policy is its own topic: use another".to_owned())
}

fn attempts(native: &NativeDeadLetter) -> Option<String> {
    let attempts = native.max_delivery_attempts;
    (!ATTEMPTS.contains(&attempts))
        .then(|| format!("max_delivery_attempts {attempts} is not allowed: use 5 to 100"))
}

fn backoffs(retry: &RetryPolicy) -> Option<String> {
    let RetryPolicy { min, max } = retry;
    (min > max || *max > LONGEST_BACKOFF).then(|| {
        format!("retry from {min:?} to {max:?} is not allowed: use 0 s to 600 s, and min up to max")
    })
}

fn empty_members(native: &NativeDeadLetter) -> impl Iterator<Item = String> {
    let members = [
        ("publisher_member", &native.publisher_member),
        ("subscriber_member", &native.subscriber_member),
    ];
    members.into_iter().filter(|(_, member)| is_empty(member.as_deref())).map(|(key, _)| {
        format!("{key} is empty: name a member such as serviceAccount:NAME, or leave it out for the project's own")
    })
}

fn is_empty(member: Option<&str>) -> bool {
    member.is_some_and(|member| member.trim().is_empty())
}
