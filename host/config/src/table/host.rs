//! The host and its transports.

use super::{GIB, HOUR, MIB, PROVISION, SECOND, key};
use crate::keys::Given::{Absent, Default as Is, Required};
use crate::keys::{Key, Kind};
use crate::words::{LogFormat, LogLevel, Store};

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
        "host.heavy_slots",
        Kind::Integer { min: 1, max: 10_000 },
        Is("64"),
        "The same for handlers that bring an interpreter (`runtime = \"heavy\"`).",
    ),
    key(
        "host.guest_threads",
        Kind::Integer { min: 1, max: 1_024 },
        Absent("one for each core"),
        "Threads that run handlers.",
    ),
    key(
        "host.resident_handlers",
        Kind::Integer { min: 1, max: 100_000 },
        Is("2048"),
        "The most handlers whose code is loaded at once; the others are loaded when a message comes for them.",
    ),
    key(
        "host.compile.memory",
        Kind::Size { min: 128 * MIB, max: 64 * GIB },
        Is("\"2GiB\""),
        "The most address space that compiling a component may take.",
    ),
    key(
        "host.compile.time",
        Kind::Duration { min: SECOND, max: HOUR },
        Is("\"2m\""),
        "The most processor time that compiling a component may take. After ten times as long on the clock it is ended, too.",
    ),
    key(
        "host.clock_resolution",
        Kind::Duration { min: 1, max: SECOND },
        Is("\"1ms\""),
        "What the clocks step by that handlers see. With a finer one they can measure what others do to the processor.",
    ),
    key(
        "host.http.trust",
        Kind::Path,
        Absent("the machine's own alone"),
        "PEM file of certificate authorities that handlers' outgoing HTTP trusts beside the machine's own.",
    ),
    key(
        "host.metrics.handlers",
        Kind::Integer { min: 1, max: 100_000 },
        Is("1000"),
        "The most handlers that have series of their own in the metrics of accounts; the others are summed as `_other` (see Metrics in `docs/operating.md`).",
    ),
    key(
        "host.account_interval",
        Kind::Duration { min: 0, max: 24 * HOUR },
        Is("\"1m\""),
        "How often a line of the log says what each tenant that was active has used; `\"0s\"` for never.",
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
];
