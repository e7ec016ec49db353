//! The host, its transports and its tenants.

use super::{HOUR, PROVISION, SECOND, SHARE, key};
use crate::keys::Given::{Absent, Default as Is, Required};
use crate::keys::{Key, Kind};
use crate::words::{LogFormat, LogLevel, Store};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const MEMORY: Kind = Kind::Size { min: 64 * KIB, max: 4 * GIB };
const DEADLINE: Kind = Kind::Duration { min: 1, max: 12 * HOUR };
const LOG: Kind = Kind::Size { min: 0, max: 16 * MIB };
const LOG_LINES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
const RESULT: Kind = Kind::Size { min: KIB, max: 64 * MIB };
const TABLE: Kind = Kind::Integer { min: 1, max: 1_000_000 };

pub(super) const KEYS: &[Key] = &[
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
    key(
        "rocketmq.name_servers",
        Kind::NameServers,
        Required,
        "Where brokers are asked for, one after another.",
    ),
    key(
        "rocketmq.namespace",
        Kind::RocketmqNamespace,
        Absent("no namespace"),
        "Namespace of all topics and consumer groups; at the broker they are `NAMESPACE%NAME`.",
    ),
    key(
        "rocketmq.access.key",
        Kind::Setting,
        Absent("requests are not signed"),
        "Access key that requests are signed with; goes with `rocketmq.access.secret`.",
    ),
    key(
        "rocketmq.access.secret",
        Kind::Secret,
        Absent("requests are not signed"),
        "Secret of that access key. It signs, and is never sent.",
    ),
    key(
        "rocketmq.tls.trust",
        Kind::Path,
        Absent("the system's certificates"),
        "PEM file of the certificates that are trusted. TLS is spoken where `rocketmq.tls` is there, also as `tls = {}`.",
    ),
    key(
        "rocketmq.tls.certificate",
        Kind::Path,
        Absent("none"),
        "PEM file of the host's own certificate, where servers ask for one; goes with `rocketmq.tls.key`.",
    ),
    key("rocketmq.tls.key", Kind::Path, Absent("none"), "PEM file of that certificate's key."),
    key(
        "rocketmq.provision",
        PROVISION,
        Is("\"validate\""),
        "What is done about topics and consumer groups at start-up.",
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
];
