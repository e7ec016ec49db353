//! A queue's access policy: whether it lets a topic send.

use serde_json::{Value, json};

/// The policy that lets a topic, and nobody else by this policy, send to a queue.
pub(crate) fn allowing(topic: &str, queue: &str) -> String {
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "pumphouse-topic",
            "Effect": "Allow",
            "Principal": { "Service": "sns.amazonaws.com" },
            "Action": "sqs:SendMessage",
            "Resource": queue,
            "Condition": { "ArnEquals": { "aws:SourceArn": topic } },
        }],
    })
    .to_string()
}

/// Whether some statement of a policy lets the topic send. Its principals are not looked at.
pub(crate) fn allows(policy: &str, topic: &str) -> bool {
    let Ok(policy) = serde_json::from_str::<Value>(policy) else { return false };
    let statements = policy.get("Statement").map(each).unwrap_or_default();
    statements.into_iter().any(|statement| statement_allows(statement, topic))
}

fn statement_allows(statement: &Value, topic: &str) -> bool {
    let actions = statement.get("Action").map(each).unwrap_or_default();
    let sends = actions
        .iter()
        .filter_map(|it| it.as_str())
        .any(|action| glob(&action.to_ascii_lowercase(), "sqs:sendmessage"));
    let effect = statement.get("Effect").and_then(Value::as_str);
    effect == Some("Allow") && sends && condition_allows(statement.get("Condition"), topic)
}

/// Every condition must name the topic; one that is about something else is not ours to judge.
fn condition_allows(condition: Option<&Value>, topic: &str) -> bool {
    let operators = condition.and_then(Value::as_object).into_iter().flatten();
    operators.filter_map(|(_, keys)| keys.as_object()).flatten().all(|(key, values)| {
        !key.eq_ignore_ascii_case("aws:SourceArn")
            || each(values).iter().filter_map(|it| it.as_str()).any(|it| glob(it, topic))
    })
}

/// A value, or each of several.
fn each(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

/// Whether a text is matched by a pattern with `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:orders";

    #[test]
    fn the_policy_that_is_made_allows_its_topic_alone() {
        let policy = allowing(TOPIC, "arn:aws:sqs:eu-west-1:123456789012:orders");
        assert!(allows(&policy, TOPIC));
        assert!(!allows(&policy, "arn:aws:sns:eu-west-1:123456789012:other"));
    }

    #[test]
    fn policies_of_others_are_understood() {
        let policy = |action: &str, condition: &str| {
            format!(r#"{{"Statement": {{"Effect": "Allow", "Action": {action} {condition}}}}}"#)
        };
        let arn = r#", "Condition": {"ArnLike": {"AWS:SourceArn": ["x", "arn:aws:sns:*:orders"]}}"#;
        let account = r#", "Condition": {"StringEquals": {"aws:SourceAccount": "1"}}"#;
        let other = r#", "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:other"}}"#;
        assert!(allows(&policy(r#""SQS:SendMessage""#, arn), TOPIC));
        assert!(allows(&policy(r#"["sqs:Receive*", "sqs:*"]"#, account), TOPIC));
        assert!(allows(&policy(r#""*""#, ""), TOPIC));
        assert!(!allows(&policy(r#""sqs:SendMessage""#, other), TOPIC));
        assert!(!allows(&policy(r#""sqs:ReceiveMessage""#, ""), TOPIC));
        assert!(!allows("", TOPIC) && !allows("{}", TOPIC));
    }
}
