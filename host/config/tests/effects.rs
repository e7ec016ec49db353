//! What is in force, and what a reload changes.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use common::{every, sound, with_handler, with_sqs, with_subscription};
use pumphouse_config::{Changes, Config, Delta};
use pumphouse_contract::review;

/// S-1: what `check` prints.
#[test]
fn s_1_what_is_in_force_is_said() {
    let embedded = sound(&with_subscription("dispatch = \"sequential\"\n"));
    let sqs = sound(&with_sqs(
        r#"queue = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo", topic = "events.fifo""#,
        r#"
        retry = { backoff = "2s", max_backoff = "5m", jitter = "none", window = "30m" }
        deduplicate = { key = "header:idempotency-key", ttl = "48h" }
        native = { max_receive_count = 2 }
        rejected = true
        "#,
    ));
    let discarding = sound(&with_handler(
        "[subscriptions.s]\nsource = { sqs = { queue = \"q\", envelope = \"enveloped\" } }\nhandler = \"acme/orders\"\nmax_deliveries = 0\nretry.backoff = \"0s\"\n",
    ));
    let said: Vec<String> = [embedded, sqs, discarding]
        .iter()
        .flat_map(|config| config.effective(&every()))
        .map(|one| one.to_string())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// C-15: min(R, M).
#[test]
fn c_15_the_lower_limit_is_in_force() {
    let limit = |budget: &str, native: &str| {
        let rest = format!("dead_letter = {{ sqs.queue = \"d\" }}\n{native}");
        let text = with_sqs("queue = \"q\"", &rest)
            .replace("max_deliveries = 3", &format!("max_deliveries = {budget}"));
        sound(&text).effective(&every())[0].delivery_limit()
    };
    let native = "native = { max_receive_count = 5 }\n";
    assert_eq!(limit("-1", ""), None);
    assert_eq!(limit("-1", native), Some(5));
    assert_eq!(limit("3", ""), Some(3));
    assert_eq!(limit("3", native), Some(3));
    assert_eq!(limit("10", native), Some(5));
    assert_eq!(limit("0", ""), Some(1));
}

/// A caller adds what the broker says to the facts and gets the same rules (F-2).
#[test]
fn f_2_the_brokers_own_limit_can_be_added() {
    let config = sound(&with_sqs("queue = \"q\"", "dead_letter = { sqs.queue = \"d\" }\n"));
    let mut facts = config.facts();
    assert_eq!(review(&facts), []);
    facts[0].native_limit = Some(3);
    assert!(review(&facts)[0].text.contains("the effective limit is 3"));
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn changes(old: &str, new: &str) -> Changes {
    Config::changes(&sound(old), &sound(new))
}

fn restarted(subscriptions: &[&str], handlers: &[&str]) -> Changes {
    Changes {
        subscriptions: Delta { restarted: names(subscriptions), ..Delta::default() },
        handlers: Delta { restarted: names(handlers), ..Delta::default() },
        ..Changes::default()
    }
}

const SECOND: &str =
    "[subscriptions.second]\nsource = { sqs.queue = \"q\" }\nhandler = \"acme/orders\"\n";

/// FR-31: only what differs is touched.
#[test]
fn fr_31_a_reload_touches_what_changed() {
    let one = with_subscription("");
    let two = format!("{one}{SECOND}");
    assert!(changes(&one, &one).is_empty());
    assert!(changes(&two, &format!("# a comment\n{two}")).is_empty());
    assert_eq!(changes(&one, &two).subscriptions.started, ["second"]);
    assert_eq!(changes(&two, &one).subscriptions.stopped, ["second"]);
    assert_eq!(
        changes(&two, &two.replace("max_deliveries = 3", "max_deliveries = 4")),
        restarted(&["orders"], &[])
    );
    let region = format!("{two}[sqs]\nregion = \"eu-west-1\"\n");
    assert_eq!(changes(&two, &region), restarted(&["second"], &[]));
}

#[test]
fn fr_31_a_handlers_limits_restart_what_it_handles() {
    let one = with_subscription("");
    let own = format!("{one}[tenants.acme.handlers.orders.grants]\nlogging = true\n");
    assert_eq!(changes(&one, &own), restarted(&["orders"], &["acme/orders"]));
    let tenants = format!("{one}[tenants.acme.limits]\nconcurrency = 3\n");
    assert_eq!(changes(&one, &tenants), restarted(&["orders"], &["acme/orders"]));
    let other = format!("{one}[tenants.acme.handlers.other]\ncomponent = \"other.wasm\"\n");
    let change = changes(&one, &other);
    assert_eq!(
        (change.subscriptions, change.handlers.started),
        (Delta::default(), names(&["acme/other"]))
    );
}

/// What all handlers of a tenant share holds at once: only a rate restarts what receives by it.
#[test]
fn fr_31_a_tenants_share_changes_without_a_restart() {
    let one = with_subscription("");
    let share = |line: &str| changes(&one, &format!("{one}[tenants.acme.limits]\n{line}\n"));
    for line in
        ["weight = 7", "runnable = 2", "instances = 9", "log_rate = \"1KiB\"", "handlers = 3"]
    {
        let change = share(line);
        assert_eq!(change, Changes { tenants: names(&["acme"]), ..Changes::default() }, "{line}");
        assert!(!change.is_empty());
    }
    let rate = share("messages_rate = 10");
    assert_eq!(rate, Changes { tenants: names(&["acme"]), ..restarted(&["orders"], &[]) });
    // What each call may use is another matter.
    assert_eq!(share("cpu = \"1s\""), restarted(&["orders"], &["acme/orders"]));
}

/// A narrowed grant is a change of the handler, which is then loaded anew.
#[test]
fn fr_31_a_grant_that_changed_restarts_the_handler() {
    let with = |grants: &str| {
        with_subscription(&format!("[tenants.acme.handlers.orders.grants]\n{grants}\n"))
    };
    let wide = with(
        "http = [{ host = \"a.example.com\" }, { host = \"b.example.com\" }]\nsecrets.token = { env = \"A\" }",
    );
    for narrow in [
        "http = [{ host = \"a.example.com\" }]\nsecrets.token = { env = \"A\" }",
        "http = [{ host = \"a.example.com\" }, { host = \"b.example.com\" }]",
        "http = [{ host = \"a.example.com\" }, { host = \"b.example.com\", methods = [\"GET\"] }]\nsecrets.token = { env = \"A\" }",
        "",
    ] {
        assert_eq!(
            changes(&wide, &with(narrow)),
            restarted(&["orders"], &["acme/orders"]),
            "{narrow}"
        );
    }
}

/// What only a new process can take is named, not silently passed over.
#[test]
fn fr_31_what_needs_a_new_process_is_named() {
    let at_restart =
        |lines: &str| changes(&with_subscription(""), &with_subscription(lines)).at_restart;
    assert_eq!(
        at_restart("[host]\nstate = \"other\"\nadmin.listen = \"off\"\n"),
        ["host.state", "host.admin.listen"]
    );
    assert_eq!(
        at_restart("[host]\ngrace = \"5s\"\nlog.level = \"debug\"\n"),
        ["host.grace", "host.log"]
    );
    assert_eq!(
        at_restart("[host]\npool_slots = 1\nguest_threads = 1\n"),
        ["host.pool_slots", "host.guest_threads"]
    );
    assert_eq!(
        at_restart(
            "[host]\nheavy_slots = 1\nresident_handlers = 1\ncompile.memory = \"1GiB\"\naccount_interval = \"0s\"\nmetrics.handlers = 9\nhttp.trust = \"ca.pem\"\nclock_resolution = \"2ms\"\n"
        ),
        [
            "host.heavy_slots",
            "host.resident_handlers",
            "host.compile",
            "host.clock_resolution",
            "host.http.trust",
            "host.account_interval",
            "host.metrics.handlers"
        ]
    );
    assert_eq!(at_restart("[embedded]\nstore = \"memory\"\n"), ["embedded.store"]);
    assert_eq!(
        at_restart("[tenants.acme]\nlimits = { memory = \"65MiB\", table = 20001 }\n"),
        ["limits.memory", "limits.table"]
    );
    assert!(at_restart("[tenants.acme]\nlimits = { memory = \"1MiB\" }\n").is_empty());
}

/// The slots are made for the default limits at least, so raising one up to them needs no new process.
#[test]
fn a_limit_within_the_slots_is_taken_at_once() {
    let with = |memory: &str| {
        with_subscription(&format!(
            "[tenants.acme]\nlimits = {{ memory = \"{memory}\", table = 5 }}\n"
        ))
    };
    assert!(changes(&with("1MiB"), &with("64MiB")).at_restart.is_empty());
    assert_eq!(changes(&with("1MiB"), &with("65MiB")).at_restart, ["limits.memory"]);
    let defaults = sound("");
    assert_eq!(defaults.largest_memory_bytes(), 64 << 20);
    assert_eq!(defaults.largest_table_elements(), 20_000);
    let text = with_subscription("");
    let limits = sound(&text).handlers["acme/orders"].limits;
    assert_eq!((limits.memory_bytes, limits.table_elements), (64 << 20, 20_000));
}
