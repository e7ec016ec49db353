//! What a sound configuration means.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{every, sound, with_handler, with_sqs, with_subscription};
use pumphouse_config::{
    DeduplicationKey, Dispatch, Envelope, LogFormat, LogLevel, Place, Provision, Secret, Semantics,
    Setting, Store, parse,
};
use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Budget, Jitter, OnFault, Policy};

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn an_empty_file_is_a_host_with_defaults_and_no_work() {
    let config = sound("");
    assert_eq!(config.host.state, PathBuf::from("conf/state"));
    assert_eq!(config.host.admin_listen, Some("127.0.0.1:9180".parse().expect("an address")));
    assert_eq!(config.host.grace, S(30));
    assert_eq!((config.host.log.format, config.host.log.level), (LogFormat::Auto, LogLevel::Info));
    assert_eq!((config.host.pool_slots, config.host.guest_threads), (512, None));
    assert_eq!(config.embedded.store, Store::Durable);
    assert_eq!(config.embedded.provision, Provision::Create);
    assert_eq!((config.sqs, config.pubsub), (None, None));
    assert!(config.subscriptions.is_empty());
}

/// The contract names the defaults: no budget, backoff 1 s to 1 min with full jitter, no window, a fault defers.
#[test]
fn the_defaults_of_a_subscription_are_those_of_the_contract() {
    let config = sound(&with_handler(
        "[subscriptions.s]\nsource = { embedded.queue = \"q\" }\nhandler = \"acme/orders\"\n",
    ));
    let one = &config.subscriptions[0];
    assert_eq!(one.policy, Policy::default());
    assert_eq!((one.dispatch, one.concurrency), (Dispatch::Concurrent, 16));
    assert_eq!((&one.dead_letter, &one.invalid_message), (&None, &None));
    assert_eq!((one.rejected, one.reads_copies), (false, false));
    assert_eq!(one.provision, Provision::Create);
}

#[test]
fn every_key_of_host_embedded_and_sqs_is_read() {
    let config = sound(
        r#"
        host = { state = "/var/lib/pumphouse", admin.listen = "off", grace = "1m30s", pool_slots = 7, guest_threads = 2, log = { format = "json", level = "debug" } }
        embedded = { store = "memory", provision = "assume" }
        [sqs]
        region = "eu-west-1"
        endpoint = "http://127.0.0.1:9324/"
        provision = "assume"
        access_key_id = { env = "KEY" }
        secret_access_key = { file = "secrets/key" }
        session_token = { file = "/run/token" }
        "#,
    );
    assert_eq!(config.host.state, PathBuf::from("/var/lib/pumphouse"));
    assert_eq!((config.host.admin_listen, config.host.grace), (None, S(90)));
    assert_eq!((config.host.pool_slots, config.host.guest_threads), (7, Some(2)));
    assert_eq!((config.host.log.format, config.host.log.level), (LogFormat::Json, LogLevel::Debug));
    assert_eq!(
        (config.embedded.store, config.embedded.provision),
        (Store::Memory, Provision::Assume)
    );
    let sqs = config.sqs.expect("a section");
    assert_eq!(sqs.region.as_deref(), Some("eu-west-1"));
    assert_eq!(sqs.endpoint.as_deref(), Some("http://127.0.0.1:9324"));
    assert_eq!(sqs.provision, Provision::Assume);
    let credentials = sqs.credentials.expect("credentials");
    assert_eq!(credentials.access_key_id, Secret::Env("KEY".into()));
    assert_eq!(credentials.secret_access_key, Secret::File("conf/secrets/key".into()));
    assert_eq!(credentials.session_token, Some(Secret::File("/run/token".into())));
}

#[test]
fn a_handler_has_its_tenants_limits_where_it_has_none_of_its_own() {
    let config = sound(
        r#"
        [tenants.acme]
        limits = { memory = "128MiB", deadline = "2s", concurrency = 32, log = "1KiB", log_lines = 9, result = "2MiB", table = 5 }
        [tenants.acme.handlers.orders]
        component = "orders.wasm"
        limits = { deadline = "5s", concurrency = 4 }
        grants = { logging = true, config = { currency = "EUR", "api.key" = { env = "API_KEY" } } }
        "#,
    );
    let tenant = &config.tenants["acme"].limits;
    let handler = &config.handlers["acme/orders"];
    assert_eq!((handler.limits.memory_bytes, handler.limits.log_bytes), (128 << 20, 1024));
    assert_eq!((handler.limits.result_bytes, handler.limits.table_elements), (2 << 20, 5));
    assert_eq!(handler.limits.log_lines, 9);
    assert_eq!((tenant.deadline, handler.limits.deadline), (S(2), S(5)));
    assert_eq!((tenant.concurrency, handler.limits.concurrency), (Some(32), Some(4)));
    assert_eq!(handler.component, PathBuf::from("conf/orders.wasm"));
    assert!(handler.grants.logging);
    assert_eq!(handler.grants.config["currency"], Setting::Text("EUR".into()));
    assert_eq!(handler.grants.config["api.key"], Setting::Secret(Secret::Env("API_KEY".into())));
}

/// C-15: `dead_letter` implies no native policy.
#[test]
fn every_key_of_a_subscription_is_read() {
    let text = with_sqs(
        r#"queue = "orders", topic = "arn:aws:sns:eu-west-1:1:events", envelope = "enveloped""#,
        r#"
        dispatch = "sequential"
        concurrency = 1
        retry = { backoff = "2s", max_backoff = "10s", jitter = "none", window = "30m" }
        on_fault = "reject"
        dead_letter = { sqs.queue = "dead" }
        invalid_message = { embedded.queue = "invalid" }
        deduplicate = { key = "header:idempotency-key", ttl = "48h" }
        rejected = true
        semantics = "deduplicated"
        ordering = "none"
        provision = "create"
        native = { max_receive_count = 9, dead_letter.queue = "native-dead" }
        "#,
    )
    .replace("max_deliveries = 3", "max_deliveries = 5");
    let config = sound(&text);
    let one = &config.subscriptions[0];
    let Place::Sqs(source) = &one.source else { panic!("{one:?}") };
    assert_eq!((source.queue.name.as_str(), source.envelope), ("orders", Envelope::Enveloped));
    assert_eq!(source.topic.as_ref().map(|topic| topic.name.as_str()), Some("events"));
    assert_eq!((one.tenant.as_str(), one.handler.as_str()), ("acme", "acme/orders"));
    assert_eq!((one.dispatch, one.concurrency), (Dispatch::Sequential, 1));
    assert_eq!((one.policy.budget, one.policy.on_fault), (Budget::Deliveries(5), OnFault::Reject));
    assert_eq!((one.policy.backoff.base, one.policy.backoff.max), (S(2), S(10)));
    assert_eq!((one.policy.backoff.jitter, one.policy.window), (Jitter::None, Some(S(1800))));
    assert_eq!(one.dead_letter.as_ref().map(Place::spelled), Some("dead"));
    assert_eq!(one.invalid_message, Some(Place::Embedded { queue: "invalid".into() }));
    let deduplicate = one.deduplicate.as_ref().expect("deduplication");
    assert_eq!(deduplicate.key, DeduplicationKey::Header("idempotency-key".into()));
    assert_eq!(deduplicate.ttl, S(48 * 3600));
    assert!(one.rejected && one.reads_copies);
    assert_eq!(
        (one.semantics, one.ordering),
        (Some(Semantics::Deduplicated), Some(Ordering::None))
    );
    assert_eq!(one.provision, Provision::Create);
    let native = one.native.as_ref().expect("a native policy");
    assert_eq!(native.limit, 9);
    assert_eq!(native.dead_letter.as_ref().map(Place::spelled), Some("native-dead"));
    let plain = sound(&with_sqs("queue = \"a\"", "dead_letter = { sqs.queue = \"b\" }\n"));
    assert_eq!(
        (&plain.subscriptions[0].native, plain.subscriptions[0].provision),
        (&None, Provision::Validate)
    );
}

/// C-7: a source that is a rejection destination here honours copies without being told.
#[test]
fn c_7_a_reader_of_a_rejection_destination_reads_copies() {
    let config = sound(&with_subscription(
        "[subscriptions.dead]\nsource = { embedded.queue = \"dead\" }\nhandler = \"acme/orders\"\n",
    ));
    let copies: Vec<(&str, bool)> =
        config.subscriptions.iter().map(|one| (one.name.as_str(), one.reads_copies)).collect();
    assert_eq!(copies, [("dead", true), ("orders", false)]);
}

#[test]
fn sequential_handles_one_at_a_time_without_being_told() {
    let config = sound(&with_subscription("dispatch = \"sequential\"\n"));
    assert_eq!(config.subscriptions[0].concurrency, 1);
}

#[test]
fn the_examples_are_sound() {
    for (name, subscriptions) in [("quickstart", 1), ("tenants", 2), ("sqs", 1), ("pubsub", 4)] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
        let text = std::fs::read_to_string(&path).expect("an example");
        let loaded = parse(&text, &path, &every()).unwrap_or_else(|found| panic!("{found}"));
        assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
        assert_eq!(loaded.config.subscriptions.len(), subscriptions);
    }
}

#[test]
fn a_secret_is_read_where_it_is_said_to_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, "s3cr3t\n").expect("a file");
    assert_eq!(Secret::File(path.clone()).resolve().expect("a secret"), "s3cr3t");
    std::fs::write(&path, "\n").expect("a file");
    assert!(Secret::File(path).resolve().is_err(), "an empty file holds no secret");
    assert!(Secret::File(folder.path().join("absent")).resolve().is_err());
    assert!(Secret::Env("PUMPHOUSE_TEST_THAT_NOBODY_SETS".into()).resolve().is_err());
}

/// Without a word of its own each place is provisioned as its transport's section says.
#[test]
fn a_destination_is_provisioned_as_its_own_transport() {
    let read = |rest: &str| {
        let text = with_sqs(
            "queue = \"q\"",
            &format!("dead_letter = {{ embedded.queue = \"d\" }}\n{rest}"),
        );
        let one = sound(&text).subscriptions.remove(0);
        let dead_letter = one.dead_letter.clone().expect("a destination");
        (one.provision, one.provision_at(&one.source), one.provision_at(&dead_letter))
    };
    let (validate, create, assume) = (Provision::Validate, Provision::Create, Provision::Assume);
    assert_eq!(read(""), (validate, validate, create));
    assert_eq!(read("provision = \"assume\"\n"), (assume, assume, assume));
}
