//! What a specification asks for that can't be, found without a request.

use std::ops::RangeInclusive;

use crate::{SinkSpec, SourceSpec};

/// How many bytes the name of a topic has on the wire.
const TOPIC_LENGTHS: RangeInclusive<usize> = 1..=127;

/// The broker keeps what comes back in a topic of this name, its group's and its topic's.
const RETRY: &str = "%RETRY%";
const DEAD: &str = "%DLQ%";
const LONGEST_RETRY: usize = 255;

/// How many queues a topic is made with, on one broker.
const QUEUES: RangeInclusive<u32> = 1..=1_024;

/// Topics that RocketMQ uses itself; so does it those that begin with the prefix.
const SYSTEM_PREFIX: &str = "rmq_sys_";
const SYSTEM: [&str; 10] = [
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC",
];

/// Everything of a source that can't be; names are on the wire.
pub(super) fn source(topic: &str, group: &str, spec: &SourceSpec) -> Vec<String> {
    let problems = [
        topic_name(topic, &spec.topic),
        group_name(group, topic),
        queues(spec.queues),
        spec.tags.as_deref().and_then(tags),
    ];
    problems.into_iter().flatten().collect()
}

/// Everything of a sink that can't be.
pub(super) fn sink(topic: &str, spec: &SinkSpec) -> Vec<String> {
    let problems = [topic_name(topic, &spec.topic), broker_owned(&spec.topic), queues(spec.queues)];
    problems.into_iter().flatten().collect()
}

fn topic_name(topic: &str, spelled: &str) -> Option<String> {
    if SYSTEM.contains(&spelled) || spelled.starts_with(SYSTEM_PREFIX) {
        return Some(format!("topic {spelled} is RocketMQ's own: use another"));
    }
    let dead = spelled.starts_with(DEAD) && topic.len() <= LONGEST_RETRY;
    let fine = is_name(topic) && !spelled.is_empty();
    (!fine || !(dead || TOPIC_LENGTHS.contains(&topic.len()))).then(|| {
        format!(
            "{topic:?} is no name of a topic: use 1 to 127 letters, digits and -_%|, the namespace included"
        )
    })
}

fn broker_owned(spelled: &str) -> Option<String> {
    (spelled.starts_with(RETRY) || spelled.starts_with(DEAD))
        .then(|| format!("topic {spelled} is filled by the broker alone: use another"))
}

fn group_name(group: &str, topic: &str) -> Option<String> {
    let longest = LONGEST_RETRY.saturating_sub(RETRY.len() + 1 + topic.len());
    (!is_name(group) || group.len() > longest).then(|| {
        format!(
            "{group:?} is no name of a group: use letters, digits and -_%|, so many that %RETRY%, group and topic \
             have at most 255 together, the namespace included"
        )
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_%|".contains(&byte))
}

fn queues(queues: u32) -> Option<String> {
    (!QUEUES.contains(&queues)).then(|| format!("queues {queues} is not allowed: use 1 to 1024"))
}

fn tags(tags: &str) -> Option<String> {
    let blank = tags.split("||").any(|tag| tag.trim().is_empty() || tag.contains('|'));
    blank.then(|| format!("tags {tags:?} are none: name them as \"a || b\", or leave them out"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provision;

    #[test]
    fn everything_that_cannot_be_is_named_at_once() {
        let fine = SourceSpec::new("orders", "work", Provision::Validate);
        assert_eq!(source("acme%orders", "acme%work", &fine), Vec::<String>::new());
        let odd = SourceSpec { queues: 0, tags: Some("a || ".into()), ..fine.clone() };
        let problems = source("or ders", "wörk", &SourceSpec { topic: "or ders".into(), ..odd });
        let expected = ["name of a topic", "name of a group", "queues 0", "tags"];
        assert!(
            problems.len() == 4
                && problems.iter().zip(expected).all(|(it, text)| it.contains(text)),
            "{problems:#?}"
        );
        for tags in ["a", "a||b", "a || b || c"] {
            let spec = SourceSpec { tags: Some(tags.into()), ..fine.clone() };
            assert_eq!(source("orders", "work", &spec), Vec::<String>::new(), "{tags}");
        }
        for tags in ["", " ", "a ||", "a | b"] {
            let spec = SourceSpec { tags: Some(tags.into()), ..fine.clone() };
            assert_eq!(source("orders", "work", &spec).len(), 1, "{tags}");
        }
    }

    #[test]
    fn names_that_are_rocketmqs_own_are_refused() {
        let named = |name: &str| sink(name, &SinkSpec::new(name, Provision::Create)).len();
        for name in ["TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "%RETRY%g", "%DLQ%g", "", "a.b"]
        {
            assert_eq!(named(name), 1, "{name}");
        }
        assert_eq!((named(&"t".repeat(127)), named(&"t".repeat(128))), (0, 1));
        let dead = SourceSpec::new("%DLQ%work", "look", Provision::Validate);
        assert_eq!(source("%DLQ%work", "look", &dead), Vec::<String>::new());
        let long = "g".repeat(255 - 7 - 1 - 6);
        let spec = SourceSpec::new("orders", &long, Provision::Validate);
        assert_eq!(source("orders", &long, &spec).len(), 0);
        assert_eq!(source("orders", &(long + "g"), &spec).len(), 1);
    }
}
