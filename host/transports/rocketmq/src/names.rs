//! Names on the wire: of topics and groups, and of the properties that RocketMQ keeps for itself.

/// The words by which a message is looked for.
pub(crate) const KEYS: &str = "KEYS";
/// What subscriptions choose by.
pub(crate) const TAGS: &str = "TAGS";
/// The message group.
pub(crate) const GROUP: &str = "__SHARDINGKEY";
/// The id that its sender gave the message, which stays over redeliveries.
pub(crate) const ID: &str = "UNIQ_KEY";

/// What RocketMQ and its clients write to route, delay, count and trace a message. On what is received none of it is a
/// header. A header of that name, of another transport, is none of these on a copy: a delay would delay the copy, and a
/// receipt would mislead.
pub(crate) const SYSTEM: [&str; 60] = [
    GROUP,
    ID,
    "1ST_POP_TIME",
    "ARRIVE_TIME",
    "BORN_TIMESTAMP",
    "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "CLUSTER",
    "CONSUME_START_TIME",
    "CORRECTION_FLAG",
    "DELAY",
    "E_T",
    "INNER_BASE",
    "INNER_MULTI_DISPATCH",
    "INNER_MULTI_QUEUE_OFFSET",
    "INNER_NUM",
    "MAX_OFFSET",
    "MAX_RECONSUME_TIMES",
    "MIN_OFFSET",
    "MQ2_FLAG",
    "MSG_REGION",
    "MSG_TYPE",
    "ORIGIN_GROUP",
    "PGROUP",
    "POP_CK",
    "POP_CK_OFFSET",
    "PROPERTY_FORWARD_QUEUE_ID",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REAL_TOPIC",
    "RECONSUME_TIME",
    "REDIRECT",
    "RETRY_TOPIC",
    "TIMER_DELAY_LEVEL",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVERY_TOKEN",
    "TIMER_DELIVER_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEQUEUE_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_FORMAT_VERSION",
    "TIMER_GENERATION",
    "TIMER_ID",
    "TIMER_LANE",
    "TIMER_ORIGINAL_DELIVER_MS",
    "TIMER_OUT_MS",
    "TIMER_OWNER_EPOCH",
    "TIMER_POLICY_FINGERPRINT",
    "TIMER_ROLL_LABEL",
    "TIMER_ROLL_TIMES",
    "TRACE_ON",
    "TRANSACTION_CHECK_TIMES",
    "TRANSFER_FLAG",
    "TRANS_OFFSET",
    "TRAN_MSG",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "WAIT",
    "__BORNHOST",
    "__CRC32#",
    "__STARTDELIVERTIME",
];

/// What RocketMQ lets nobody set, and a sender's client or the broker's own dead-lettering does. They are headers
/// of what is received (C-11, C-15); what RocketMQ would do on seeing them, a copy must not cause.
const RESERVED: [&str; 14] = [
    "BUYER_ID",
    "CORRELATION_ID",
    "DLQ_ORIGIN_MESSAGE_ID",
    "DLQ_ORIGIN_TOPIC",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INSTANCE_ID",
    "ORIGIN_MESSAGE_ID",
    "REPLY_TO_CLIENT",
    "TRACE_CONTEXT",
    "TTL",
    "_SYS_MSG_PRIORITY_",
    "__LITE_TOPIC",
    "__transactionId__",
];

/// Properties of names that begin so are not stored.
const TRANSIENT: &str = "__RMQ.TRANSIENT.";

/// A topic or a group in its namespace.
pub(crate) fn within(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}%{name}"),
        None => name.to_owned(),
    }
}

/// Whether a property is RocketMQ's own, and no header of the message.
pub(crate) fn is_system(property: &str) -> bool {
    SYSTEM.contains(&property) || property.starts_with(TRANSIENT)
}

/// Whether a property of that name can't be set by a sender.
pub(crate) fn is_reserved(property: &str) -> bool {
    is_system(property) || RESERVED.contains(&property)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_its_namespace() {
        assert_eq!(within(None, "orders"), "orders");
        assert_eq!(within(Some("acme"), "orders"), "acme%orders");
    }

    /// Everything that RocketMQ's own client refuses as a sender's property, but keys and tags, which are headers.
    #[test]
    fn what_rocketmq_reserves_is_reserved() {
        let theirs = &*rocketmq_model::common::message::STRING_HASH_SET;
        for name in theirs.iter().filter(|name| ![KEYS, TAGS].contains(name)) {
            assert!(is_reserved(name), "{name}");
        }
        assert!(is_system("__RMQ.TRANSIENT.TOPIC_SYS_FLAG"));
        for own in [KEYS, TAGS, "traceparent", "content-type", "delay", "TIMER", ""] {
            assert!(!is_reserved(own), "{own}");
        }
    }
}
