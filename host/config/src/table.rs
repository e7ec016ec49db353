//! The table of keys itself.

use crate::keys::Given::{Absent, Default as Is, Required};
use crate::keys::{Given, Key, Kind};
use crate::words::{
    Dispatch, Envelope, LogFormat, LogLevel, Provision, PubsubMode, Semantics, Store,
};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn key(path: &'static str, kind: Kind, given: Given, meaning: &'static str) -> Key {
    Key { path, kind, given, meaning }
}

const WHOLE: Kind = Kind::Integer { min: i64::MIN, max: i64::MAX };
const MEMORY: Kind = Kind::Size { min: 64 * KIB, max: 4 * GIB };
const DEADLINE: Kind = Kind::Duration { min: 1, max: 12 * HOUR };
const SHARE: Kind = Kind::Integer { min: 1, max: 10_000 };
const LOG: Kind = Kind::Size { min: 0, max: 16 * MIB };
const LOG_LINES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
const RESULT: Kind = Kind::Size { min: KIB, max: 64 * MIB };
const TABLE: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const DELAY: Kind = Kind::Duration { min: 0, max: 7 * DAY };
/// What Pub/Sub takes for the bounds of a subscription's own retry policy.
const REDELIVERY: Kind = Kind::Duration { min: 0, max: 600 * SECOND };
const WINDOW: Kind = Kind::Duration { min: 1, max: 365 * DAY };
const PROVISION: Kind = Kind::Word(Provision::WORDS);

/// Every key there is.
pub const KEYS: &[Key] = &[
    key(
        "host.state",
        Kind::Path,
        Is("\"state\""),
        "Directory of the embedded broker, the state store and the compiled handlers; used by one host at a time.",
    ),
    key(
        "host.admin.listen",
        Kind::Listen,
        Is("\"127.0.0.1:9180\""),
        "Where health, readiness and metrics are served. Nobody is asked who they are, so keep it on loopback or behind something that does.",
    ),
    key(
        "host.grace",
        Kind::Duration { min: SECOND, max: HOUR },
        Is("\"30s\""),
        "How long a drain may take before the calls that still run are cut off.",
    ),
    key(
        "host.log.format",
        Kind::Word(LogFormat::WORDS),
        Is("\"auto\""),
        "How log lines look; `auto` is text on a terminal and JSON elsewhere.",
    ),
    key(
        "host.log.level",
        Kind::Word(LogLevel::WORDS),
        Is("\"info\""),
        "The least severe events that are logged. Of libraries nothing below `info` is; `RUST_LOG` gets at it.",
    ),
    key(
        "host.pool_slots",
        Kind::Integer { min: 1, max: 10_000 },
        Is("512"),
        "The most handler instances alive at once, of all tenants; a call beyond it waits.",
    ),
    key(
        "host.guest_threads",
        Kind::Integer { min: 1, max: 1_024 },
        Absent("one for each core"),
        "Threads that run handlers.",
    ),
    key(
        "embedded.store",
        Kind::Word(Store::WORDS),
        Is("\"durable\""),
        "Whether the embedded broker keeps its messages on disk, in `host.state`, or loses them with the process.",
    ),
    key(
        "embedded.provision",
        PROVISION,
        Is("\"create\""),
        "What is done about embedded queues at start-up.",
    ),
    key(
        "sqs.region",
        Kind::Text,
        Absent("as the AWS SDK finds it"),
        "Region of the queues and topics that are spelled by name.",
    ),
    key(
        "sqs.endpoint",
        Kind::Url,
        Absent("as the AWS SDK finds it"),
        "Endpoint of SQS and of SNS.",
    ),
    key(
        "sqs.provision",
        PROVISION,
        Is("\"validate\""),
        "What is done about queues, topics, their subscriptions and redrive policies at start-up.",
    ),
    key(
        "sqs.access_key_id",
        Kind::Secret,
        Absent("default credential chain"),
        "Access key in place of the default credential chain; goes with `sqs.secret_access_key`.",
    ),
    key(
        "sqs.secret_access_key",
        Kind::Secret,
        Absent("default credential chain"),
        "Secret of that access key.",
    ),
    key(
        "sqs.session_token",
        Kind::Secret,
        Absent("none"),
        "Session token of that access key, where it is a temporary one.",
    ),
    key(
        "pubsub.project",
        Kind::Project,
        Absent("as Google's tools find it"),
        "Project of the topics and subscriptions that are spelled by id.",
    ),
    key(
        "pubsub.endpoint",
        Kind::Url,
        Absent("`PUBSUB_EMULATOR_HOST`, else Google's"),
        "Endpoint of Pub/Sub. One that begins with `http://` is an emulator: without encryption and without credentials.",
    ),
    key(
        "pubsub.credentials",
        Kind::Secret,
        Absent("Application Default Credentials"),
        "JSON of a service account's key, or of another credentials file, in place of Application Default Credentials.",
    ),
    key(
        "pubsub.provision",
        PROVISION,
        Is("\"validate\""),
        "What is done about topics, subscriptions and their dead-letter policies at start-up.",
    ),
    key("tenants.<tenant>.limits.memory", MEMORY, Is("\"64MiB\""), "The most memory of one call."),
    key(
        "tenants.<tenant>.limits.deadline",
        DEADLINE,
        Is("\"30s\""),
        "The longest that one call may take, waiting in host calls included. It makes the lease (see Leases).",
    ),
    key(
        "tenants.<tenant>.limits.concurrency",
        SHARE,
        Absent("no limit of its own"),
        "The most calls at once of all handlers of the tenant together.",
    ),
    key(
        "tenants.<tenant>.limits.log",
        LOG,
        Is("\"64KiB\""),
        "The most text that one call may log.",
    ),
    key(
        "tenants.<tenant>.limits.log_lines",
        LOG_LINES,
        Is("1000"),
        "The most lines that one call may log.",
    ),
    key(
        "tenants.<tenant>.limits.result",
        RESULT,
        Is("\"1MiB\""),
        "The most bytes of an answer that the host takes from a call.",
    ),
    key(
        "tenants.<tenant>.limits.table",
        TABLE,
        Is("20000"),
        "The most elements of each of a handler's tables.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.component",
        Kind::Path,
        Required,
        "The handler's component file. It is watched: replacing it swaps the handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.memory",
        MEMORY,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.deadline",
        DEADLINE,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.concurrency",
        SHARE,
        Absent("no limit of its own"),
        "The most calls of this handler at once, within the tenant's.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.log",
        LOG,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.log_lines",
        LOG_LINES,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.result",
        RESULT,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.table",
        TABLE,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.logging",
        Kind::Flag,
        Is("false"),
        "Whether the handler may log.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.config.<setting>",
        Kind::Setting,
        Absent("not granted"),
        "A setting that the handler may read under this name. Without any the interface is not granted.",
    ),
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
