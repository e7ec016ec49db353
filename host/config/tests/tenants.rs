//! Tenants: what they may use, what their handlers are granted, and what of it is refused.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use common::{errors, every, found, read, refused, sound, with_handler};
use pumphouse_config::{
    Code, Config, Diagnostic, HttpGrant, HttpLimits, HttpScheme, Reuse, Runtime, Secret, Setting,
    Share, load,
};
use pumphouse_contract::Severity;

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn a_tenant_that_says_nothing_has_the_defaults() {
    let config = sound(&with_handler(""));
    let tenant = &config.tenants["acme"];
    let expected = Share {
        weight: 100,
        runnable: 4,
        instances: None,
        log_bytes_per_second: None,
        log_lines_per_second: None,
        messages_per_second: None,
        component_bytes: None,
        handlers: None,
    };
    assert_eq!(tenant.share, expected);
    let handler = &config.handlers["acme/orders"];
    assert_eq!((handler.limits.cpu, handler.runtime), (None, Runtime::Auto));
    assert_eq!(handler.instances, Reuse::default());
    assert_eq!(
        handler.grants,
        pumphouse_config::Grants::default(),
        "nothing is granted by default"
    );
    let http =
        HttpLimits { time: S(10), request_bytes: 1 << 20, response_bytes: 4 << 20, calls: 4 };
    assert_eq!(handler.limits.http, http);
    let host = &config.host;
    assert_eq!(
        (host.heavy_slots, host.resident_handlers, host.metrics_handlers),
        (64, 2_048, 1_000)
    );
    assert_eq!((host.compile.memory_bytes, host.compile.time), (2 << 30, S(120)));
    assert_eq!((host.account_interval, &host.http_trust), (Some(S(60)), &None));
    assert_eq!(host.clock_resolution, Duration::from_millis(1));
}

const EVERYTHING: &str = r#"
[host]
heavy_slots = 8
resident_handlers = 10
compile = { memory = "512MiB", time = "10s" }
account_interval = "0s"
metrics.handlers = 5
http.trust = "ca.pem"
clock_resolution = "50ms"

[tenants.acme.limits]
weight = 300
runnable = 2
instances = 40
log_rate = "64KiB"
log_lines_rate = 100
messages_rate = 50
component = "1MiB"
handlers = 3
cpu = "1s"
http = { time = "2s", calls = 1 }

[tenants.acme.handlers.orders]
component = "orders.wasm"
runtime = "heavy"
instances = { reuse = true, messages = 50, age = "30s", idle = 2 }
limits = { http.response = "64KiB" }

[tenants.acme.handlers.orders.grants]
logging = true
config = { currency = "EUR", "api.key" = { env = "API_KEY" } }
secrets = { token = { env = "TOKEN" }, "signing key" = { file = "keys/sign" } }
http = [
  { host = "API.example.com", methods = ["GET", "POST"] },
  { host = "*.internal.example", scheme = "http", port = 8080, private = true },
  { host = "[2001:db8::1]" },
]
"#;

#[test]
fn every_key_of_tenants_is_read() {
    let config = sound(EVERYTHING);
    let expected = Share {
        weight: 300,
        runnable: 2,
        instances: Some(40),
        log_bytes_per_second: Some(65_536),
        log_lines_per_second: Some(100),
        messages_per_second: Some(50),
        component_bytes: Some(1 << 20),
        handlers: Some(3),
    };
    assert_eq!(config.tenants["acme"].share, expected);
    let host = &config.host;
    assert_eq!((host.heavy_slots, host.resident_handlers, host.metrics_handlers), (8, 10, 5));
    assert_eq!((host.compile.memory_bytes, host.compile.time), (512 << 20, S(10)));
    assert_eq!(host.account_interval, None);
    assert_eq!(host.clock_resolution, Duration::from_millis(50));
    assert_eq!(host.http_trust.as_deref(), Some(std::path::Path::new("conf/ca.pem")));
    let handler = &config.handlers["acme/orders"];
    assert_eq!((handler.runtime, handler.limits.cpu), (Runtime::Heavy, Some(S(1))));
    let reuse = Reuse { reuse: Some(true), messages: Some(50), age: Some(S(30)), idle: Some(2) };
    assert_eq!(handler.instances, reuse);
    let http =
        HttpLimits { time: S(2), request_bytes: 1 << 20, response_bytes: 64 << 10, calls: 1 };
    assert_eq!(handler.limits.http, http);
    let secrets = &handler.grants.secrets;
    assert_eq!(secrets["token"], Secret::Env("TOKEN".into()));
    assert_eq!(secrets["signing key"], Secret::File("conf/keys/sign".into()));
    assert_eq!(handler.grants.config["api.key"], Setting::Secret(Secret::Env("API_KEY".into())));
    let grant = |host: &str, methods: &[&str]| HttpGrant {
        host: host.into(),
        port: None,
        scheme: HttpScheme::Https,
        methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        private: false,
    };
    let second = HttpGrant {
        port: Some(8080),
        scheme: HttpScheme::Http,
        private: true,
        ..grant("*.internal.example", &["GET", "HEAD"])
    };
    let expected = [
        grant("api.example.com", &["GET", "POST"]),
        second,
        grant("2001:db8::1", &["GET", "HEAD"]),
    ];
    assert_eq!(handler.grants.http, expected);
}

/// What `check` prints and the admin side shows: limits, and the names of grants, never a value.
#[test]
fn what_is_in_force_is_said_and_no_value_of_it() {
    let config = sound(EVERYTHING);
    let tenant = config.tenant_terms("acme").expect("a tenant");
    let handler = config.handler_terms("acme/orders").expect("a handler");
    let said = format!("{tenant}{handler}");
    assert!(
        !said.contains("EUR") && !said.contains("TOKEN") && !said.contains("keys/sign"),
        "{said}"
    );
    insta::assert_snapshot!(said);
    assert_eq!((config.tenant_terms("acm"), config.handler_terms("acme")), (None, None));
    let bare = sound(&with_handler("[tenants.acme2]\n"));
    assert_eq!(bare.tenant_terms("acme").map(|one| one.handlers), Some(1), "not of another's name");
    assert_eq!(bare.tenant_terms("acme2").map(|one| one.handlers), Some(0));
    assert!(bare.handler_terms("acme/orders").expect("a handler").to_string().contains("none"));
}

/// Everything that is wrong is said at once, each with its key and what is allowed.
#[test]
fn every_finding_about_tenants_is_said_at_once() {
    let text = r#"
[host]
pool_slots = 10

[tenants.acme.limits]
weight = 0
runnable = 0
instances = 11
messages_rate = "10"
component = "1GiB"
handlers = 1
log_rate = "0B"

[tenants.acme.handlers.a]
component = "a.wasm"
runtime = "haevy"
limits = { cpu = "3s", deadline = "2s" }
instances = { reuse = false, messages = 5 }

[tenants.acme.handlers.b]
component = "b.wasm"

[tenants.acme.handlers.b.grants]
publish = ["orders"]
key-value = true
loging = true
secrets = { token = "hunter2", other = { env = "A", file = "B" } }
http = [
  { hots = "a.example.com" },
  { host = "https://a.example.com/x", methods = ["get"] },
  { host = "*" },
  { host = "a.example.com", methods = ["GET", "GET"], port = 0 },
  { host = "a.example.com", methods = [] },
  7,
]
"#;
    let all = found(text);
    insta::assert_snapshot!(all.render(false));
    let said = errors(text);
    let expected = |key: &str, code: Code| {
        assert!(said.contains(&(key.to_owned(), code)), "{key} {code} in {all}");
    };
    for (key, code) in [
        ("limits.weight", Code::WrongValue),
        ("limits.runnable", Code::WrongValue),
        ("limits.instances", Code::Contradiction),
        ("limits.messages_rate", Code::WrongType),
        ("limits.component", Code::WrongValue),
        ("limits.handlers", Code::Contradiction),
        ("limits.log_rate", Code::WrongValue),
        ("handlers.a.runtime", Code::WrongValue),
        ("handlers.a.limits.cpu", Code::Contradiction),
        ("handlers.a.instances.messages", Code::Contradiction),
        ("handlers.b.grants.publish", Code::Unsupported),
        ("handlers.b.grants.key-value", Code::Unsupported),
        ("handlers.b.grants.loging", Code::UnknownKey),
        ("handlers.b.grants.secrets.token", Code::LiteralSecret),
        ("handlers.b.grants.secrets.other", Code::WrongValue),
        ("handlers.b.grants.http[0].hots", Code::UnknownKey),
        ("handlers.b.grants.http[0].host", Code::Missing),
        ("handlers.b.grants.http[1].host", Code::WrongValue),
        ("handlers.b.grants.http[1].methods", Code::WrongValue),
        ("handlers.b.grants.http[2].host", Code::WrongValue),
        ("handlers.b.grants.http[3].methods", Code::WrongValue),
        ("handlers.b.grants.http[3].port", Code::WrongValue),
        ("handlers.b.grants.http[4].methods", Code::WrongValue),
        ("handlers.b.grants.http[5]", Code::WrongType),
    ] {
        expected(&format!("tenants.acme.{key}"), code);
    }
    assert!(
        !format!("{}{all:?}", all.render(true)).contains("hunter2"),
        "a secret is not repeated"
    );
}

fn one(text: &str) -> Diagnostic {
    let all = refused(text);
    let errors: Vec<&Diagnostic> =
        all.iter().filter(|one| one.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{all}");
    errors[0].clone()
}

fn granted(grants: &str) -> String {
    with_handler(&format!("[tenants.acme.handlers.orders.grants]\n{grants}\n"))
}

/// What is to come is refused by its name, so that nobody believes it in force.
#[test]
fn a_grant_that_is_to_come_is_refused_by_name() {
    for (key, name) in
        [("publish", "publish"), ("key_value", "key_value"), ("key-value", "key_value")]
    {
        let found = one(&granted(&format!("{key} = true")));
        assert_eq!(found.code, Code::Unsupported, "{key}");
        assert!(
            found.message.contains(&format!("`grants.{name}` is to come")),
            "{}",
            found.message
        );
    }
}

#[test]
fn a_host_of_outgoing_http_is_a_host_and_nothing_else() {
    for host in
        ["api.example.com", "*.example.com", "localhost", "127.0.0.1", "::1", "[::1]", "a_b.c-d.e"]
    {
        assert!(read(&granted(&format!("http = [{{ host = \"{host}\" }}]"))).is_ok(), "{host}");
    }
    for host in [
        "",
        "*",
        "*.com",
        "*.",
        "a.*.com",
        "http://a.com",
        "a.com:443",
        "a.com/x",
        "u@a.com",
        "a..com",
        "ä.com",
        "127.1",
        "0x7f000001",
        "a.com.",
    ] {
        let found = one(&granted(&format!("http = [{{ host = \"{host}\" }}]")));
        let key = "tenants.acme.handlers.orders.grants.http[0].host";
        assert_eq!((found.key.as_str(), found.code), (key, Code::WrongValue), "{host}");
    }
}

#[test]
fn the_same_host_twice_is_a_contradiction() {
    let twice = "http = [{ host = \"a.example.com\" }, { host = \"A.example.com\", port = 443, methods = [\"PUT\"] }]";
    let found = one(&granted(twice));
    assert_eq!(found.code, Code::Contradiction);
    assert_eq!(found.key, "tenants.acme.handlers.orders.grants.http[1]");
    let ports = "http = [{ host = \"a.example.com\" }, { host = \"a.example.com\", port = 8443 }]";
    assert!(read(&granted(ports)).is_ok());
}

/// A handler takes over its tenant's limit on processor time, and is not blamed for it where its own deadline is shorter
/// by the tenant's word alone.
#[test]
fn a_limit_on_processor_time_is_met_within_the_deadline() {
    let cpu = |tenant: &str, handler: &str| {
        errors(&format!(
            "[tenants.acme.limits]\n{tenant}\n[tenants.acme.handlers.orders]\ncomponent = \"o.wasm\"\n[tenants.acme.handlers.orders.limits]\n{handler}\n"
        ))
    };
    assert_eq!(cpu("cpu = \"5s\"\ndeadline = \"10s\"", ""), []);
    let tenants = ("tenants.acme.limits.cpu".to_owned(), Code::Contradiction);
    assert_eq!(cpu("cpu = \"5s\"\ndeadline = \"1s\"", ""), [tenants]);
    let handlers = ("tenants.acme.handlers.orders.limits.deadline".to_owned(), Code::Contradiction);
    assert_eq!(cpu("cpu = \"5s\"\ndeadline = \"10s\"", "deadline = \"1s\""), [handlers]);
}

/// A component that its tenant may not have is found before anything starts.
#[test]
fn a_component_beyond_its_tenants_limit_is_said_when_the_file_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    let text = with_handler("[tenants.acme.limits]\ncomponent = \"2KiB\"\n");
    std::fs::write(&path, text).expect("a file");
    std::fs::write(folder.path().join("orders.wasm"), vec![0; 2048]).expect("a file");
    assert!(load(&path, &every()).is_ok());
    std::fs::write(folder.path().join("orders.wasm"), vec![0; 2049]).expect("a file");
    let all = load(&path, &every()).expect_err("too large");
    let one = all.iter().next().expect("one");
    assert_eq!(one.key, "tenants.acme.handlers.orders.component");
    assert!(one.message.contains("limits.component = 2KiB"), "{}", one.message);
}

#[test]
fn ten_thousand_handlers_are_read_in_a_moment() {
    let mut text = String::new();
    for tenant in 0..100 {
        for handler in 0..100 {
            text.push_str(&format!(
                "[tenants.t{tenant}.handlers.h{handler}]\ncomponent = \"x.wasm\"\n"
            ));
        }
    }
    let began = std::time::Instant::now();
    let config: Config = sound(&text);
    assert_eq!(config.handlers.len(), 10_000);
    let took = began.elapsed();
    assert!(took < S(20), "{took:?}");
}
