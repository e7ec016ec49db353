//! Tenants and their handlers.

use super::{DAY, GIB, HOUR, KIB, MIB, SHARE, key};
use crate::keys::Given::{Absent, Default as Is, Required};
use crate::keys::{Key, Kind};
use crate::words::{HttpScheme, Runtime};

/// What the host itself reads as a component, in bytes.
pub(crate) const LARGEST_COMPONENT: u64 = 128 * MIB;

const MEMORY: Kind = Kind::Size { min: 64 * KIB, max: 4 * GIB };
const TIME: Kind = Kind::Duration { min: 1, max: 12 * HOUR };
const LOG: Kind = Kind::Size { min: 0, max: 16 * MIB };
const LOG_LINES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
const RESULT: Kind = Kind::Size { min: KIB, max: 64 * MIB };
const TABLE: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const RATE: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const HTTP_TIME: Kind = Kind::Duration { min: 1, max: HOUR };
const HTTP_BODY: Kind = Kind::Size { min: 0, max: GIB };
const HTTP_CALLS: Kind = Kind::Integer { min: 1, max: 1_000 };

pub(super) const KEYS: &[Key] = &[
    key("tenants.<tenant>.limits.memory", MEMORY, Is("\"64MiB\""), "The most memory of one call."),
    key(
        "tenants.<tenant>.limits.cpu",
        TIME,
        Absent("the deadline alone"),
        "The most time on a processor of one call. Waiting for a processor and in host calls is no part of it.",
    ),
    key(
        "tenants.<tenant>.limits.deadline",
        TIME,
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
        "tenants.<tenant>.limits.http.time",
        HTTP_TIME,
        Is("\"10s\""),
        "The longest that one outgoing request may take, to the last byte of its answer. The call's deadline bounds it too.",
    ),
    key(
        "tenants.<tenant>.limits.http.request",
        HTTP_BODY,
        Is("\"1MiB\""),
        "The largest body of an outgoing request.",
    ),
    key(
        "tenants.<tenant>.limits.http.response",
        HTTP_BODY,
        Is("\"4MiB\""),
        "The largest body of an answer to one.",
    ),
    key(
        "tenants.<tenant>.limits.http.calls",
        HTTP_CALLS,
        Is("4"),
        "The most outgoing requests that one call may have open at once; more are refused.",
    ),
    key(
        "tenants.<tenant>.limits.weight",
        SHARE,
        Is("100"),
        "The tenant's part of the processors where they are not enough, in proportion to the other tenants'.",
    ),
    key(
        "tenants.<tenant>.limits.runnable",
        SHARE,
        Is("4"),
        "The most calls of the tenant that compute at once; one beyond it waits for its turn.",
    ),
    key(
        "tenants.<tenant>.limits.instances",
        SHARE,
        Absent("a quarter of `host.pool_slots`"),
        "The most instances of the tenant alive at once, at most `host.pool_slots`; a call beyond it waits.",
    ),
    key(
        "tenants.<tenant>.limits.log_rate",
        Kind::Size { min: KIB, max: GIB },
        Absent("no rate"),
        "How much text all handlers of the tenant together may log a second; lines beyond it are dropped and counted.",
    ),
    key(
        "tenants.<tenant>.limits.log_lines_rate",
        RATE,
        Absent("no rate"),
        "How many lines all handlers of the tenant together may log a second; lines beyond it are dropped and counted.",
    ),
    key(
        "tenants.<tenant>.limits.messages_rate",
        RATE,
        Absent("no rate"),
        "How many messages a second all subscriptions of the tenant together receive. Those beyond it stay at the broker.",
    ),
    key(
        "tenants.<tenant>.limits.component",
        Kind::Size { min: KIB, max: LARGEST_COMPONENT },
        Absent("128MiB"),
        "The largest component file of a handler of the tenant.",
    ),
    key(
        "tenants.<tenant>.limits.handlers",
        Kind::Integer { min: 1, max: 100_000 },
        Absent("any number"),
        "How many handlers the tenant may have.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.component",
        Kind::Path,
        Required,
        "The handler's component file. It is watched: replacing it swaps the handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.runtime",
        Kind::Word(Runtime::WORDS),
        Is("\"auto\""),
        "Which engine profile runs it: `lean` for compiled languages, `heavy` for those that bring an interpreter; `auto` goes by the component.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.instances.reuse",
        Kind::Flag,
        Absent("as the runtime has it"),
        "Whether an instance is given one message after another, or each message a fresh one.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.instances.messages",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent("as the runtime has it"),
        "After how many messages an instance that is used again is dropped.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.instances.age",
        Kind::Duration { min: 1, max: DAY },
        Absent("as the runtime has it"),
        "After which time an instance that is used again is dropped.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.instances.idle",
        Kind::Integer { min: 1, max: 10_000 },
        Absent("as the runtime has it"),
        "The most instances that wait for a message to be used again.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.memory",
        MEMORY,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.cpu",
        TIME,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.deadline",
        TIME,
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
        "tenants.<tenant>.handlers.<handler>.limits.http.time",
        HTTP_TIME,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.http.request",
        HTTP_BODY,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.http.response",
        HTTP_BODY,
        Absent("the tenant's"),
        "As the tenant's, for this handler.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.limits.http.calls",
        HTTP_CALLS,
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
        "tenants.<tenant>.handlers.<handler>.grants.secrets.<secret>",
        Kind::Secret,
        Absent("not granted"),
        "A secret that the handler may read under this name. It is shown nowhere. Without any the interface is not granted.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.http[].host",
        Kind::HttpHost,
        Required,
        "A host that the handler may ask, or with `*.` before it every host below it. Without any the interface is not granted.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.http[].methods",
        Kind::Methods,
        Is("[\"GET\", \"HEAD\"]"),
        "The methods that it may ask with.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.http[].scheme",
        Kind::Word(HttpScheme::WORDS),
        Is("\"https\""),
        "With TLS, or without.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.http[].port",
        Kind::Integer { min: 1, max: 65_535 },
        Absent("443, of `http` 80"),
        "The port.",
    ),
    key(
        "tenants.<tenant>.handlers.<handler>.grants.http[].private",
        Kind::Flag,
        Is("false"),
        "Whether the host may be at an address that is private, link-local or of this machine. Redirects are asked the same.",
    ),
];
