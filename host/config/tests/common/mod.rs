//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::time::Duration;

use pumphouse_config::{Build, Code, Config, Diagnostics, Loaded, TransportFacts, parse};
use pumphouse_contract::Severity;
use pumphouse_contract::ports::Counter;

const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn embedded() -> TransportFacts {
    TransportFacts {
        key: "embedded",
        longest_lease: 12 * HOUR,
        longest_delay: 24 * HOUR,
        delay_counts_from_receive: false,
        settle_linger: Duration::ZERO,
        counter: Counter::Exact,
        native_policy: false,
    }
}

pub(crate) fn sqs() -> TransportFacts {
    TransportFacts {
        key: "sqs",
        longest_lease: 12 * HOUR,
        longest_delay: 12 * HOUR,
        delay_counts_from_receive: true,
        settle_linger: Duration::from_millis(5),
        counter: Counter::Approximate,
        native_policy: true,
    }
}

pub(crate) fn pubsub() -> TransportFacts {
    TransportFacts {
        key: "pubsub",
        longest_lease: Duration::from_secs(600),
        longest_delay: Duration::from_secs(600),
        delay_counts_from_receive: false,
        settle_linger: Duration::from_millis(5),
        counter: Counter::Approximate,
        native_policy: true,
    }
}

pub(crate) fn rocketmq() -> TransportFacts {
    TransportFacts {
        key: "rocketmq",
        longest_lease: 72 * HOUR,
        longest_delay: 72 * HOUR,
        delay_counts_from_receive: false,
        settle_linger: Duration::ZERO,
        counter: Counter::Approximate,
        native_policy: false,
    }
}

pub(crate) fn every() -> Build {
    Build::new(vec![embedded(), sqs(), pubsub(), rocketmq()])
}

pub(crate) fn read(text: &str) -> Result<Loaded, Diagnostics> {
    parse(text, Path::new("conf/pumphouse.toml"), &every())
}

pub(crate) fn sound(text: &str) -> Config {
    read(text).unwrap_or_else(|found| panic!("{found}")).config
}

pub(crate) fn refused(text: &str) -> Diagnostics {
    match read(text) {
        Ok(_) => panic!("taken:\n{text}"),
        Err(found) => found,
    }
}

/// Everything that is found, errors or not.
pub(crate) fn found(text: &str) -> Diagnostics {
    read(text).map_or_else(|found| found, |loaded| loaded.warnings)
}

/// Key and code of every error.
pub(crate) fn errors(text: &str) -> Vec<(String, Code)> {
    let all = found(text);
    let errors = all.iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| (one.key.clone(), one.code)).collect()
}

/// Key and code of every warning.
pub(crate) fn warnings(text: &str) -> Vec<(String, Code)> {
    let all = found(text);
    let warnings = all.iter().filter(|one| one.severity == Severity::Warning);
    warnings.map(|one| (one.key.clone(), one.code)).collect()
}

/// A tenant with a handler, before whatever a test is about.
pub(crate) fn with_handler(rest: &str) -> String {
    format!("[tenants.acme.handlers.orders]\ncomponent = \"orders.wasm\"\n{rest}")
}

/// A sound subscription with more lines.
pub(crate) fn with_subscription(rest: &str) -> String {
    with_handler(&format!(
        "[subscriptions.orders]\nsource = {{ embedded.queue = \"orders\" }}\nhandler = \"acme/orders\"\nmax_deliveries = 3\ndead_letter = {{ embedded.queue = \"dead\" }}\n{rest}"
    ))
}

/// The same on SQS.
pub(crate) fn with_sqs(source: &str, rest: &str) -> String {
    with_handler(&format!(
        "[subscriptions.orders]\nsource = {{ sqs = {{ {source} }} }}\nhandler = \"acme/orders\"\nmax_deliveries = 3\n{rest}"
    ))
}

/// The same on Pub/Sub.
pub(crate) fn with_pubsub(source: &str, rest: &str) -> String {
    with_handler(&format!(
        "[subscriptions.orders]\nsource = {{ pubsub = {{ {source} }} }}\nhandler = \"acme/orders\"\nmax_deliveries = 3\n{rest}"
    ))
}

/// The same on RocketMQ, with a name server.
pub(crate) fn with_rocketmq(source: &str, rest: &str) -> String {
    let subscription = with_handler(&format!(
        "[subscriptions.orders]\nsource = {{ rocketmq = {{ {source} }} }}\nhandler = \"acme/orders\"\nmax_deliveries = 3\n{rest}"
    ));
    format!("[rocketmq]\nname_servers = [\"127.0.0.1:9876\"]\n{subscription}")
}

/// A line that gives this key a value, also one of the first table of a list, and the path that a finding has there.
pub(crate) fn line_of(path: &str, value: impl std::fmt::Display) -> (String, String) {
    let line = match path.split_once("[].") {
        Some((list, name)) => format!("{list} = [{{ {name} = {value} }}]\n"),
        None => format!("{path} = {value}\n"),
    };
    (line, path.replace("[]", "[0]"))
}
