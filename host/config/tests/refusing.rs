//! What is refused, where, and with which words (FR-30).
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::{Path, PathBuf};

use common::{
    embedded, errors, every, found, line_of, refused, with_handler, with_sqs, with_subscription,
};
use pumphouse_config::{Build, Code, Diagnostic, KEYS, Kind, load, parse};
use pumphouse_contract::Severity;

/// Six files, each with the wrong line marked.
const FR_30: [(&str, &str, Code); 6] = [
    ("top_level", "tennants", Code::UnknownKey),
    ("pump", "subscriptions.orders.max_delivery", Code::UnknownKey),
    ("nested_table", "tenants.acme.handlers.orders.grants.loging", Code::UnknownKey),
    ("array_of_tables", "subscriptions", Code::WrongType),
    ("other_transport", "subscriptions.orders.source.embedded.topic", Code::UnknownKey),
    ("duplicate", "subscriptions.orders.max_deliveries", Code::DuplicateKey),
];

fn fr_30(name: &str) -> PathBuf {
    Path::new("tests/fr_30").join(format!("{name}.toml"))
}

fn marked_line(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().position(|line| line.ends_with("# here")).expect("a mark") + 1
}

#[test]
fn fr_30_six_files_are_refused_at_the_right_line() {
    for (name, key, code) in FR_30 {
        let path = fr_30(name);
        let all = load(&path, &every()).expect_err(name);
        let one: Vec<&Diagnostic> = all.iter().collect();
        assert_eq!(one.len(), 1, "{all}");
        assert_eq!((one[0].line, one[0].code), (marked_line(&path), code), "{name}");
        assert_eq!((one[0].key.as_str(), one[0].file.as_path()), (key, path.as_path()), "{name}");
    }
}

/// What a reader sees, without colours.
#[test]
fn fr_30_a_finding_shows_its_line_and_the_nearest_name() {
    for (name, ..) in FR_30 {
        let all = load(&fr_30(name), &every()).expect_err(name);
        insta::assert_snapshot!(format!("fr_30_{name}"), all.render(false));
    }
}

const WRONG_IN_MANY_WAYS: &str = r#"
[host]
grace = 30
admin.listen = "localhost:9180"

[tenants.acme.handlers.orders]
component = "orders.wasm"
limits = { memory = "64", deadline = "0s", concurrency = 0 }

[subscriptions.a]
source = { embedded.queue = "a" }
handler = "acme/order"
dispach = "concurrent"
max_deliveries = 3
retry = { backoff = "1 s", jitter = "ful" }
dead_letter = { embedded.queue = "b" }

[subscriptions.b]
source = { embedded.queue = "b" }
handler = "acme/orders"
max_deliveries = 1
dead_letter = { embedded.queue = "a" }
concurrency = "many"
"#;

#[test]
fn every_finding_is_said_at_once_and_in_the_order_of_the_file() {
    let said = errors(WRONG_IN_MANY_WAYS);
    let keys: Vec<&str> = said.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "host.grace",
            "host.admin.listen",
            "tenants.acme.handlers.orders.limits.memory",
            "tenants.acme.handlers.orders.limits.deadline",
            "tenants.acme.handlers.orders.limits.concurrency",
            "subscriptions.a.handler",
            "subscriptions.a.dispach",
            "subscriptions.a.retry.backoff",
            "subscriptions.a.retry.jitter",
            "subscriptions.a.dead_letter",
            "subscriptions.b.concurrency",
        ]
    );
    insta::assert_snapshot!("many", found(WRONG_IN_MANY_WAYS).render(false));
}

#[test]
fn one_line_for_each_finding_where_there_is_no_terminal() {
    let all = refused("[host]\ngrase = \"1s\"\n");
    assert_eq!(
        all.to_string(),
        "conf/pumphouse.toml:2:1: error: host.grase: unknown key `grase` in `host`; did you mean `grace`? allowed: `state`, `admin`, `grace`, `log`, `pool_slots`, `heavy_slots`, `guest_threads`, `resident_handlers`, `compile`, `clock_resolution`, `http`, `metrics`, `account_interval`"
    );
}

/// For programs: each part by its name.
#[test]
fn a_finding_has_its_parts() {
    let all = refused("[host]\ngrase = \"1s\"\n");
    let fields = all.iter().next().expect("one").fields();
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["severity", "code", "file", "line", "column", "key", "message", "allowed", "nearest"]
    );
    assert!(fields.contains(&("code", "unknown-key".to_owned())), "{fields:?}");
    assert!(fields.contains(&("line", "2".to_owned())), "{fields:?}");
}

/// No key of the table is silently passed over: each complains about a value of no type of its own.
#[test]
fn every_key_of_the_table_is_read() {
    for key in KEYS {
        let path = key
            .path
            .replace("<tenant>", "acme")
            .replace("<handler>", "orders")
            .replace("<setting>", "currency")
            .replace("<subscription>", "s")
            .replace(['<', '>'], "");
        // A value of no type of its own, which for a list is a list of such.
        let (line, path) = line_of(&path, "[1]");
        let said = errors(&line);
        let complaint = said.iter().find(|(said, _)| *said == path);
        assert_eq!(complaint.map(|(_, code)| *code), Some(Code::WrongType), "{path}: {said:?}");
    }
}

#[test]
fn a_number_is_within_its_bounds() {
    for key in KEYS {
        let Kind::Integer { min, max } = key.kind else { continue };
        if min == i64::MIN {
            continue;
        }
        let written = key.path.replace(['<', '>'], "");
        for (value, within) in [(min, true), (max, true), (min - 1, false), (max + 1, false)] {
            let (line, path) = line_of(&written, value);
            let said = errors(&line);
            let refused = said.contains(&(path.clone(), Code::WrongValue));
            assert_eq!(refused, !within, "{path} = {value}: {said:?}");
        }
    }
}

fn one(text: &str) -> Diagnostic {
    let all = refused(text);
    let errors: Vec<&Diagnostic> =
        all.iter().filter(|one| one.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{all}");
    errors[0].clone()
}

#[test]
fn a_value_says_what_is_wrong_with_it() {
    let table: &[(&str, &str, Code, &str)] = &[
        ("grace = 30", "host.grace", Code::WrongType, "with its unit, such as `\"30s\"`"),
        ("grace = \"30\"", "host.grace", Code::WrongValue, "\"30\" is no duration"),
        ("grace = \"0s\"", "host.grace", Code::WrongValue, "out of bounds"),
        ("grace = \"25h\"", "host.grace", Code::WrongValue, "out of bounds"),
        ("state = \"\"", "host.state", Code::WrongValue, "empty"),
        ("log.level = \"inf\"", "host.log.level", Code::WrongValue, "none of the words"),
        ("log = \"json\"", "host.log", Code::WrongType, "expected a table, found a string"),
        ("pool_slots = 0", "host.pool_slots", Code::WrongValue, "0 is out of bounds"),
        ("pool_slots = 1.5", "host.pool_slots", Code::WrongType, "found a float"),
        (
            "admin.listen = \"x\"",
            "host.admin.listen",
            Code::WrongValue,
            "no IP address with a port",
        ),
    ];
    for (line, key, code, says) in table {
        let found = one(&format!("[host]\n{line}\n"));
        assert_eq!((found.key.as_str(), found.code, found.line), (*key, *code, 2), "{line}");
        assert!(found.message.contains(says), "{line}: {}", found.message);
    }
}

#[test]
fn a_place_names_one_transport_and_its_queue() {
    let table: &[(&str, &str, Code)] = &[
        ("{}", "source", Code::Missing),
        ("{ embedded = {} }", "source.embedded.queue", Code::Missing),
        ("{ sqs.topic = \"t\" }", "source.sqs.queue", Code::Missing),
        ("{ sqs.queue = \"a\", embedded.queue = \"a\" }", "source.sqs", Code::Contradiction),
        ("{ sqs.queue = \"a b\" }", "source.sqs.queue", Code::WrongValue),
        ("{ sqs.queue = \".fifo\" }", "source.sqs.queue", Code::WrongValue),
        ("{ sqs.queue = \"arn:aws:sns:r:1:q\" }", "source.sqs.queue", Code::WrongValue),
        ("{ sqs.queue = \"https://x/q\" }", "source.sqs.queue", Code::WrongValue),
        (
            "{ sqs = { queue = \"q\", topic = \"arn:aws:sqs:r:1:t\" } }",
            "source.sqs.topic",
            Code::WrongValue,
        ),
        (
            "{ sqs = { queue = \"q.fifo\", topic = \"t\" } }",
            "source.sqs.topic",
            Code::Contradiction,
        ),
        (
            "{ sqs = { queue = \"q\", topic = \"t.fifo\" } }",
            "source.sqs.topic",
            Code::Contradiction,
        ),
        ("{ embedded.queue = \"a b\" }", "source.embedded.queue", Code::WrongValue),
        ("{ pubsub.topic = \"events\" }", "source.pubsub.subscription", Code::Missing),
        (
            "{ pubsub.subscription = \"abc\", sqs.queue = \"a\" }",
            "source.pubsub",
            Code::Contradiction,
        ),
        (
            "{ pubsub.queue = \"q\", pubsub.subscription = \"abc\" }",
            "source.pubsub.queue",
            Code::UnknownKey,
        ),
        ("{ rocketmq.topic = \"t\" }", "source.rocketmq.group", Code::Missing),
        ("{ sqz.queue = \"t\" }", "source.sqz", Code::UnknownKey),
        ("\"orders\"", "source", Code::WrongType),
    ];
    for (source, key, code) in table {
        let found = one(&with_handler(&format!(
            "[subscriptions.s]\nsource = {source}\nhandler = \"acme/orders\"\n"
        )));
        assert_eq!((found.key, found.code), (format!("subscriptions.s.{key}"), *code), "{source}");
    }
    let none = one(&with_handler("[subscriptions.s]\nhandler = \"acme/orders\"\n"));
    assert_eq!((none.key.as_str(), none.code), ("subscriptions.s.source", Code::Missing));
}

#[test]
fn a_destination_takes_no_keys_of_a_source() {
    let found = one(&with_sqs(
        "queue = \"a\"",
        "dead_letter = { sqs = { queue = \"b\", topic = \"t\" } }\n",
    ));
    assert_eq!(
        (found.key.as_str(), found.code),
        ("subscriptions.orders.dead_letter.sqs.topic", Code::UnknownKey)
    );
}

/// The build without a transport says which ones it has.
#[test]
fn a_build_without_sqs_names_what_it_has() {
    let build = Build::new(vec![embedded()]);
    let text = with_sqs("queue = \"a\"", "dead_letter = { embedded.queue = \"b\" }\n");
    let all = parse(&text, Path::new("p.toml"), &build).expect_err("no sqs");
    let one = all.iter().next().expect("one");
    assert_eq!(
        (one.key.as_str(), one.code),
        ("subscriptions.orders.source.sqs", Code::Unsupported)
    );
    assert_eq!(one.message, "this build has no transport `sqs`");
    assert_eq!(one.allowed.as_deref(), Some("`embedded`"));
}

#[test]
fn a_key_that_stands_elsewhere_is_pointed_to() {
    let found = one(&with_subscription("backoff = \"1s\"\n"));
    assert_eq!(found.nearest.as_deref(), Some("retry.backoff"));
    let found = one("[embedded]\nregion = \"eu-west-1\"\n");
    assert_eq!(found.message, "`region` is a key of `sqs` alone; `embedded` has no such key");
    let found = one("[sqs]\nproject = \"demo\"\n");
    assert_eq!(found.message, "`project` is a key of `pubsub` alone; `sqs` has no such key");
}

#[test]
fn an_unknown_handler_names_the_nearest() {
    let found = one(&with_handler(
        "[subscriptions.s]\nsource = { embedded.queue = \"q\" }\nhandler = \"acme/order\"\n",
    ));
    assert_eq!((found.code, found.nearest.as_deref()), (Code::UnknownName, Some("acme/orders")));
    for wrong in ["orders", "acme/", "/orders", "a/b/c"] {
        let found = one(&with_handler(&format!(
            "[subscriptions.s]\nsource = {{ embedded.queue = \"q\" }}\nhandler = \"{wrong}\"\n"
        )));
        assert_eq!(found.code, Code::WrongValue, "{wrong}");
    }
}

#[test]
fn what_excludes_each_other_is_refused() {
    let table = [
        ("dispatch = \"sequential\"\nconcurrency = 2\n", "concurrency", Code::Contradiction),
        ("retry.backoff = \"5m\"\n", "retry.backoff", Code::Contradiction),
        ("concurrency = 0\n", "concurrency", Code::WrongValue),
        ("retry.window = \"0s\"\n", "retry.window", Code::WrongValue),
        ("deduplicate.key = \"heder:x\"\n", "deduplicate.key", Code::WrongValue),
        ("deduplicate.key = \"header:\"\n", "deduplicate.key", Code::WrongValue),
    ];
    for (line, key, code) in table {
        let found = one(&with_subscription(line));
        assert_eq!(
            (found.key, found.code),
            (format!("subscriptions.orders.{key}"), code),
            "{line}"
        );
    }
}

/// A secret never stands in the file, and what stands there by mistake is never shown.
#[test]
fn a_literal_secret_is_refused_and_not_repeated() {
    for value in [
        "\"hunter2\"",
        "{ value = \"hunter2\" }",
        "{ env = \"A\", file = \"hunter2\" }",
        "[\"hunter2\"]",
    ] {
        let text = format!(
            "[sqs]\naccess_key_id = {{ env = \"ID\" }}\nsecret_access_key = {value}\nregon = 1\n"
        );
        let all = refused(&text);
        assert!(all.iter().any(|one| one.key == "sqs.secret_access_key"), "{all}");
        let shown = format!("{}{}{all:?}", all.render(true), all);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(all.render(false).contains("regon = 1"), "{all}");
    }
    let all = refused("[sqs]\nendpoint = \"https://me:hunter2@example.org\"\n");
    assert!(!format!("{}{all:?}", all.render(false)).contains("hunter2"));
}

#[test]
fn an_access_key_is_whole() {
    let found = one("[sqs]\naccess_key_id = { env = \"ID\" }\n");
    assert_eq!((found.key.as_str(), found.code), ("sqs.secret_access_key", Code::Missing));
}

#[test]
fn a_name_is_plain() {
    let all = refused("[subscriptions.\"a b\"]\n[tenants.\"\"]\n");
    let said: Vec<(&str, Code)> = all.iter().map(|one| (one.key.as_str(), one.code)).collect();
    assert!(said.contains(&("subscriptions.\"a b\"", Code::WrongValue)), "{all}");
    assert!(said.contains(&("tenants.\"\"", Code::WrongValue)), "{all}");
}

#[test]
fn what_is_no_toml_is_said_with_its_place() {
    let found = one("[host]\ngrace = \n");
    assert_eq!((found.code, found.line), (Code::Syntax, 2));
    let table = one("[host]\n[sqs]\n[host]\n");
    assert_eq!((table.key.as_str(), table.code, table.line), ("host", Code::DuplicateKey, 3));
    let inner = one("[subscriptions.s]\nretry = { backoff = \"1s\", backoff = \"2s\" }\n");
    assert_eq!(
        (inner.key.as_str(), inner.code),
        ("subscriptions.s.retry.backoff", Code::DuplicateKey)
    );
    assert!(inner.message.contains("first in line 2"), "{}", inner.message);
}

#[test]
fn a_file_that_can_t_be_read_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    let code =
        |path: &Path| load(path, &every()).expect_err("refused").iter().next().map(|d| d.code);
    assert_eq!(code(&path), Some(Code::Unreadable));
    assert_eq!(code(folder.path()), Some(Code::Unreadable));
    std::fs::write(&path, b"[host]\nstate = \"\xff\"\n").expect("a file");
    let all = load(&path, &every()).expect_err("no UTF-8");
    let one = all.iter().next().expect("one");
    assert_eq!((one.code, one.line, one.column), (Code::Unreadable, 2, 10));
    std::fs::write(&path, "#".repeat((16 << 20) + 1)).expect("a file");
    assert_eq!(code(&path), Some(Code::Unreadable));
}

#[test]
fn a_component_that_is_not_there_is_said_when_the_file_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    std::fs::write(&path, with_handler("")).expect("a file");
    let all = load(&path, &every()).expect_err("no component");
    let one = all.iter().next().expect("one");
    assert_eq!(
        (one.key.as_str(), one.code, one.line),
        ("tenants.acme.handlers.orders.component", Code::MissingFile, 2)
    );
    std::fs::write(folder.path().join("orders.wasm"), b"").expect("a file");
    assert!(load(&path, &every()).is_ok());
}
