//! Subscriptions.

use super::{DAY, PROVISION, SECOND, SHARE, key};
use crate::keys::Given::{Absent, Default as Is, Required};
use crate::keys::{Key, Kind};
use crate::words::{Dispatch, Envelope, PubsubMode, Semantics, TopicKind};

const WHOLE: Kind = Kind::Integer { min: i64::MIN, max: i64::MAX };
const DELAY: Kind = Kind::Duration { min: 0, max: 7 * DAY };
/// What Pub/Sub takes for the bounds of a subscription's own retry policy.
const REDELIVERY: Kind = Kind::Duration { min: 0, max: 600 * SECOND };
const WINDOW: Kind = Kind::Duration { min: 1, max: 365 * DAY };
const TOPIC_KIND: Kind = Kind::Word(TopicKind::WORDS);
/// RocketMQ has no limit of its own; a queue costs files on the broker.
const QUEUES: Kind = Kind::Integer { min: 1, max: 1_024 };

pub(super) const KEYS: &[Key] = &[
    key(
        "subscriptions.<subscription>.source.embedded.queue",
        Kind::EmbeddedQueue,
        Absent("another transport's"),
        "Queue of the embedded broker that messages come from.",
    ),
    key(
        "subscriptions.<subscription>.source.sqs.queue",
        Kind::SqsQueue,
        Absent("another transport's"),
        "SQS queue that messages come from. A name that ends in `.fifo` is a FIFO queue.",
    ),
    key(
        "subscriptions.<subscription>.source.sqs.topic",
        Kind::SnsTopic,
        Absent("no topic"),
        "SNS topic that the queue is subscribed to; `provision` covers it and the subscription.",
    ),
    key(
        "subscriptions.<subscription>.source.sqs.envelope",
        Kind::Word(Envelope::WORDS),
        Is("\"raw\""),
        "Whether a body is the publisher's own or the JSON envelope of SNS, which is then opened. A body that only looks like one is never opened.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.subscription",
        Kind::PubsubSubscription,
        Absent("another transport's"),
        "Pub/Sub subscription that messages come from.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.topic",
        Kind::PubsubTopic,
        Absent("not said"),
        "Topic of that subscription. `provision = \"create\"` needs it, `pumphouse publish` too.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.mode",
        Kind::Word(PubsubMode::WORDS),
        Is("\"stream\""),
        "Whether messages are pushed over a stream, or pulled.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.ordered",
        Kind::Flag,
        Is("false"),
        "Whether the subscription keeps the order of each ordering key. It must be so at the service too, where it can't be changed later.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.held",
        Kind::Integer { min: 1, max: 100_000 },
        Is("1000"),
        "The most messages that a stream holds beyond those in the handlers; what is pushed past it goes back.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.retry.min",
        REDELIVERY,
        Is("\"10s\""),
        "Shortest wait of the subscription's own retry policy, which also holds for messages whose lease lapses. Without `retry` none is asked for.",
    ),
    key(
        "subscriptions.<subscription>.source.pubsub.retry.max",
        REDELIVERY,
        Is("\"10m\""),
        "Longest wait of that policy.",
    ),
    key(
        "subscriptions.<subscription>.source.rocketmq.topic",
        Kind::RocketmqTopic,
        Absent("another transport's"),
        "RocketMQ topic that messages come from.",
    ),
    key(
        "subscriptions.<subscription>.source.rocketmq.group",
        Kind::ConsumerGroup,
        Absent("another transport's"),
        "Consumer group that the topic is read as; required beside `topic`.",
    ),
    key(
        "subscriptions.<subscription>.source.rocketmq.kind",
        TOPIC_KIND,
        Is("\"normal\""),
        "Whether the topic promises no order, or that messages of one group come in order. It must be so at the broker too.",
    ),
    key(
        "subscriptions.<subscription>.source.rocketmq.tags",
        Kind::Tags,
        Absent("all messages"),
        "Which tags are read. Messages with others are passed over for this consumer group.",
    ),
    key(
        "subscriptions.<subscription>.source.rocketmq.queues",
        QUEUES,
        Is("8"),
        "How many queues the topic has on each broker where it is made. On a FIFO topic it is the most messages at once.",
    ),
    key(
        "subscriptions.<subscription>.handler",
        Kind::Handler,
        Required,
        "The handler that messages are given to.",
    ),
    key(
        "subscriptions.<subscription>.dispatch",
        Kind::Word(Dispatch::WORDS),
        Is("\"concurrent\""),
        "Whether messages are handled side by side, those of one ordering key one after another, or all one after another.",
    ),
    key(
        "subscriptions.<subscription>.concurrency",
        SHARE,
        Absent("16, or 1 where `dispatch` is `\"sequential\"`"),
        "The most messages of this subscription in a handler at once.",
    ),
    key(
        "subscriptions.<subscription>.max_deliveries",
        WHOLE,
        Is("-1"),
        "The budget: the most deliveries, the first included, before a deferral becomes a rejection with `delivery-error`; -1 is no budget.",
    ),
    key(
        "subscriptions.<subscription>.retry.backoff",
        DELAY,
        Is("\"1s\""),
        "How long a deferral without a delay of its own waits after the first delivery; doubles with each further one.",
    ),
    key(
        "subscriptions.<subscription>.retry.max_backoff",
        DELAY,
        Is("\"1m\""),
        "The longest such wait.",
    ),
    key(
        "subscriptions.<subscription>.retry.jitter",
        Kind::Word(&["full", "none"]),
        Is("\"full\""),
        "`full` spreads each wait evenly between nothing and all of it; `none` waits all of it.",
    ),
    key(
        "subscriptions.<subscription>.retry.window",
        WINDOW,
        Absent("no window"),
        "The time from the first delivery, or from publication where that is not known, past which a deferral becomes a rejection with `delivery-error`.",
    ),
    key(
        "subscriptions.<subscription>.on_fault",
        Kind::Word(&["defer", "reject"]),
        Is("\"defer\""),
        "Whether a trap, a missed deadline or too much memory is a deferral or a rejection with `delivery-error`. It never acknowledges.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.embedded.queue",
        Kind::EmbeddedQueue,
        Absent("another transport's"),
        "Embedded queue for messages rejected with `delivery-error` or `none`.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.sqs.queue",
        Kind::SqsQueue,
        Absent("another transport's"),
        "SQS queue for messages rejected with `delivery-error` or `none`.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.pubsub.topic",
        Kind::PubsubTopic,
        Absent("another transport's"),
        "Pub/Sub topic for messages rejected with `delivery-error` or `none`.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.pubsub.subscription",
        Kind::PubsubSubscription,
        Absent("the topic's id"),
        "Subscription that keeps its messages. `create` makes it where the topic has none, since a topic without one drops what it gets.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.rocketmq.topic",
        Kind::RocketmqTopic,
        Absent("another transport's"),
        "RocketMQ topic for messages rejected with `delivery-error` or `none`.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.rocketmq.kind",
        TOPIC_KIND,
        Absent("the source's, else `\"normal\"`"),
        "What that topic promises.",
    ),
    key(
        "subscriptions.<subscription>.dead_letter.rocketmq.queues",
        QUEUES,
        Is("8"),
        "How many queues it has on each broker where it is made.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.embedded.queue",
        Kind::EmbeddedQueue,
        Absent("another transport's"),
        "Embedded queue for messages rejected as `unacceptable`.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.sqs.queue",
        Kind::SqsQueue,
        Absent("another transport's"),
        "SQS queue for messages rejected as `unacceptable`.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.pubsub.topic",
        Kind::PubsubTopic,
        Absent("another transport's"),
        "Pub/Sub topic for messages rejected as `unacceptable`.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.pubsub.subscription",
        Kind::PubsubSubscription,
        Absent("the topic's id"),
        "Subscription that keeps its messages, as with `dead_letter`.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.rocketmq.topic",
        Kind::RocketmqTopic,
        Absent("another transport's"),
        "RocketMQ topic for messages rejected as `unacceptable`.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.rocketmq.kind",
        TOPIC_KIND,
        Absent("the source's, else `\"normal\"`"),
        "What that topic promises.",
    ),
    key(
        "subscriptions.<subscription>.invalid_message.rocketmq.queues",
        QUEUES,
        Is("8"),
        "How many queues it has on each broker where it is made.",
    ),
    key(
        "subscriptions.<subscription>.deduplicate.key",
        Kind::DeduplicationKey,
        Is("\"id\""),
        "What makes two messages one: the broker's message id, or a header. A message without the header goes by its id.",
    ),
    key(
        "subscriptions.<subscription>.deduplicate.ttl",
        WINDOW,
        Is("\"24h\""),
        "How long a handled message is remembered.",
    ),
    key(
        "subscriptions.<subscription>.rejected",
        Kind::Flag,
        Is("false"),
        "Whether the source holds rejected copies of another configuration's, whose stamped count is then honoured.",
    ),
    key(
        "subscriptions.<subscription>.semantics",
        Kind::Word(Semantics::WORDS),
        Absent("what the source and `deduplicate` give"),
        "What is asked for; start-up refuses what can't be given.",
    ),
    key(
        "subscriptions.<subscription>.ordering",
        Kind::Word(&["none", "key"]),
        Absent("what the source gives"),
        "What order is asked for; start-up refuses what can't be given.",
    ),
    key(
        "subscriptions.<subscription>.provision",
        PROVISION,
        Absent("each transport's"),
        "As the transports', for the source and the destinations of this subscription.",
    ),
    key(
        "subscriptions.<subscription>.native.max_receive_count",
        Kind::Integer { min: 1, max: 1_000 },
        Absent("no native policy"),
        "SQS: the most deliveries, the first included, before the broker itself moves a message, without metadata.",
    ),
    key(
        "subscriptions.<subscription>.native.max_delivery_attempts",
        Kind::Integer { min: 5, max: 100 },
        Absent("no native policy"),
        "Pub/Sub: the same. Without a policy a subscription reports no delivery count.",
    ),
    key(
        "subscriptions.<subscription>.native.dead_letter.queue",
        Kind::SqsQueue,
        Absent("none"),
        "SQS: where the broker moves it. `dead_letter` never stands for it.",
    ),
    key(
        "subscriptions.<subscription>.native.dead_letter.topic",
        Kind::PubsubTopic,
        Absent("none"),
        "Pub/Sub: where the broker moves it; required in a native policy. `dead_letter` never stands for it.",
    ),
    key(
        "subscriptions.<subscription>.native.publisher_member",
        Kind::Member,
        Absent("Pub/Sub's service agent, looked up"),
        "Pub/Sub: who gets the publisher role on the dead-letter topic under `create`. Said, nothing is looked up for it.",
    ),
    key(
        "subscriptions.<subscription>.native.subscriber_member",
        Kind::Member,
        Absent("Pub/Sub's service agent, looked up"),
        "Pub/Sub: who gets the subscriber role on the source's subscription under `create`. Said, nothing is looked up for it.",
    ),
];
