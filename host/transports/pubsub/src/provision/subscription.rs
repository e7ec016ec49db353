//! A subscription: as it is to be made, and how one that is there differs.

use std::time::Duration;

use google_cloud_pubsub::model::{
    DeadLetterPolicy, ExpirationPolicy, RetryPolicy as WireRetryPolicy, Subscription,
};

use super::admin::{read, wire};
use super::check::{Plan, Policy, ack_deadline};
use crate::{Mode, RetryPolicy, SourceSpec, SubscriptionFacts};

/// What the service writes where a topic was deleted.
const DELETED: &str = "_deleted-topic_";

/// What the service does where a retry policy leaves a bound out.
const SHORTEST_BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(600);

/// A subscription without demands of its own. It stays however long nobody reads it.
pub(crate) fn keeping(name: &str, topic: &str) -> Subscription {
    Subscription::new()
        .set_name(name)
        .set_topic(topic)
        .set_expiration_policy(ExpirationPolicy::new())
}

/// The subscription of a source, as it is to be made.
pub(crate) fn wanted(plan: &Plan, topic: &str, spec: &SourceSpec) -> Subscription {
    let seconds = i32::try_from(ack_deadline(spec.lease)).unwrap_or(i32::MAX);
    let policy = plan.policy.as_ref().map(|policy| {
        DeadLetterPolicy::new()
            .set_dead_letter_topic(&policy.topic)
            .set_max_delivery_attempts(i32::try_from(policy.attempts).unwrap_or(i32::MAX))
    });
    let retry = spec.retry.map(|RetryPolicy { min, max }| {
        WireRetryPolicy::new().set_minimum_backoff(wire(min)).set_maximum_backoff(wire(max))
    });
    keeping(&plan.subscription, topic)
        .set_ack_deadline_seconds(seconds)
        .set_enable_message_ordering(spec.ordered)
        .set_or_clear_dead_letter_policy(policy)
        .set_or_clear_retry_policy(retry)
}

/// How a subscription differs from what is wanted, each difference with what to do.
pub(crate) fn differences(found: &Subscription, plan: &Plan, spec: &SourceSpec) -> Vec<String> {
    [
        other_topic(found, plan.topic.as_deref()),
        other_order(found, spec.ordered),
        short_deadline(found, spec),
        plan.policy.as_ref().and_then(|policy| other_policy(found, policy)),
        spec.retry.as_ref().and_then(|retry| other_retry(found, retry)),
        pushes(found),
        found
            .detached
            .then(|| "it is detached from its topic: delete it and make it anew".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn other_topic(found: &Subscription, wanted: Option<&str>) -> Option<String> {
    if found.topic == DELETED {
        return Some("its topic was deleted: delete the subscription and make it anew".to_owned());
    }
    let wanted = wanted.filter(|wanted| *wanted != found.topic)?;
    Some(format!(
        "its topic is {} where the configuration says {wanted}: correct the topic, or use another subscription",
        found.topic
    ))
}

/// The service never changes a subscription's order.
fn other_order(found: &Subscription, wanted: bool) -> Option<String> {
    let is = found.enable_message_ordering;
    (is != wanted).then(|| {
        format!(
            "message ordering is {} where the configuration says {}: set ordered = {is}, or use another subscription",
            on(is),
            on(wanted),
        )
    })
}

/// A stream sets its own deadline.
fn short_deadline(found: &Subscription, spec: &SourceSpec) -> Option<String> {
    let (is, needed) = (deadline(found), ack_deadline(spec.lease));
    (spec.mode == Mode::Pull && is < needed).then(|| {
        format!(
            "its acknowledgement deadline is {is} s where the handler needs {needed} s: raise it to {needed} s, or \
             shorten the handler's deadline"
        )
    })
}

fn other_policy(found: &Subscription, wanted: &Policy) -> Option<String> {
    let Policy { topic, attempts, .. } = wanted;
    let Some(policy) = &found.dead_letter_policy else {
        return Some(format!(
            "it has no dead-letter policy where the configuration asks for one: set it to {attempts} attempts and \
             {topic}, or remove native"
        ));
    };
    let mut parts = Vec::new();
    if limit(policy) != *attempts {
        parts.push(format!("max_delivery_attempts is {} and not {attempts}", limit(policy)));
    }
    if policy.dead_letter_topic != *topic {
        parts.push(format!("dead_letter_topic is {} and not {topic}", policy.dead_letter_topic));
    }
    let parts = Some(parts.join(", ")).filter(|parts| !parts.is_empty())?;
    Some(format!("dead-letter policy: {parts}: correct native or the subscription's policy"))
}

fn other_retry(found: &Subscription, wanted: &RetryPolicy) -> Option<String> {
    let RetryPolicy { min, max } = wanted;
    let Some(policy) = &found.retry_policy else {
        return Some(format!(
            "it has no retry policy where the configuration says {min:?} to {max:?}: set it, or remove retry"
        ));
    };
    let shortest = read(policy.minimum_backoff).unwrap_or(SHORTEST_BACKOFF);
    let longest = read(policy.maximum_backoff).unwrap_or(LONGEST_BACKOFF);
    ((shortest, longest) != (*min, *max)).then(|| {
        format!(
            "its retry policy is {shortest:?} to {longest:?} where the configuration says {min:?} to {max:?}: correct \
             retry or the subscription's policy"
        )
    })
}

/// Where messages are sent elsewhere, nobody can pull them. The endpoint may hold a secret and is not named.
fn pushes(found: &Subscription) -> Option<String> {
    let push = found.push_config.as_ref().is_some_and(|push| !push.push_endpoint.is_empty());
    let to = match () {
        () if push => "pushes to an endpoint",
        () if found.bigquery_config.is_some() => "writes to BigQuery",
        () if found.cloud_storage_config.is_some() => "writes to Cloud Storage",
        () if found.bigtable_config.is_some() => "writes to Bigtable",
        () => return None,
    };
    Some(format!(
        "it {to}, and such a subscription can't be pulled: remove that configuration, or use another subscription"
    ))
}

/// What a subscription says for the findings.
pub(crate) fn facts(found: &Subscription) -> SubscriptionFacts {
    let policy = found.dead_letter_policy.as_ref();
    SubscriptionFacts {
        native_limit: policy.map(limit),
        native_dead_letter: policy.map(|policy| policy.dead_letter_topic.clone()),
        retention: read(found.message_retention_duration),
        exactly_once: found.enable_exactly_once_delivery,
        ordered: found.enable_message_ordering,
        ack_deadline: Duration::from_secs(deadline(found)),
    }
}

/// 0 stands for the service's own default.
fn deadline(found: &Subscription) -> u64 {
    match u64::try_from(found.ack_deadline_seconds) {
        Ok(0) | Err(_) => ack_deadline(Duration::ZERO),
        Ok(seconds) => seconds,
    }
}

/// 0 stands for the service's own default, which is 5.
fn limit(policy: &DeadLetterPolicy) -> u32 {
    match u32::try_from(policy.max_delivery_attempts) {
        Ok(0) | Err(_) => 5,
        Ok(attempts) => attempts,
    }
}

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use google_cloud_pubsub::model::{BigQueryConfig, BigtableConfig, CloudStorageConfig};

    use super::*;
    use crate::Provision;

    fn plan() -> Plan {
        Plan { subscription: "projects/p/subscriptions/s".into(), topic: None, policy: None }
    }

    fn spec() -> SourceSpec {
        SourceSpec { lease: Duration::ZERO, ..SourceSpec::new("s", Provision::Validate) }
    }

    /// What no emulator can be brought to.
    #[test]
    fn what_cannot_be_pulled_is_named() {
        let found = || keeping("projects/p/subscriptions/s", "projects/p/topics/t");
        let cases = [
            (found().set_bigquery_config(BigQueryConfig::new()), "BigQuery"),
            (found().set_cloud_storage_config(CloudStorageConfig::new()), "Cloud Storage"),
            (found().set_bigtable_config(BigtableConfig::new()), "Bigtable"),
            (found().set_detached(true), "detached"),
        ];
        for (found, text) in cases {
            let differences = differences(&found, &plan(), &spec());
            assert!(
                matches!(differences.as_slice(), [one] if one.contains(text)),
                "{differences:?}"
            );
        }
        assert_eq!(differences(&found(), &plan(), &spec()), Vec::<String>::new());
    }

    #[test]
    fn what_the_service_leaves_out_is_its_default() {
        let policy = DeadLetterPolicy::new().set_dead_letter_topic("projects/p/topics/d");
        let found = Subscription::new().set_dead_letter_policy(policy);
        let facts = facts(&found);
        assert_eq!((facts.native_limit, facts.ack_deadline), (Some(5), Duration::from_secs(10)));
        let found = found.set_retry_policy(WireRetryPolicy::new());
        let retry = RetryPolicy { min: SHORTEST_BACKOFF, max: LONGEST_BACKOFF };
        assert_eq!(other_retry(&found, &retry), None);
    }

    #[test]
    fn a_lease_becomes_whole_seconds_that_the_service_takes() {
        let cases = [(0, 10), (10_000, 10), (10_001, 11), (600_000, 600), (900_000, 600)];
        for (lease, seconds) in cases {
            assert_eq!(ack_deadline(Duration::from_millis(lease)), seconds, "{lease} ms");
        }
    }

    /// A subscription that nobody reads for a month stays.
    #[test]
    fn what_is_made_does_not_expire() {
        let spec = SourceSpec::new("s", Provision::Create);
        let made = wanted(&plan(), "projects/p/topics/t", &spec);
        assert_eq!(
            made.expiration_policy,
            Some(ExpirationPolicy::new()),
            "never, and not the default"
        );
        let json = serde_json::to_value(&made).expect("it is written");
        assert_eq!(json["expirationPolicy"], serde_json::json!({}));
    }
}
