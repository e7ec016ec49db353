//! Tenants in one process: what each may use, what each is granted, and the account of it.

use std::fs;
use std::time::{Duration, Instant};

use pumphouse_e2e::{Host, LONG, Line, Ran, Scene, get, guest, run_within};
use serde_json::{Value, json};

use crate::common::{done, header, set};

pumphouse_e2e::tests! {
    fr_20_an_endless_tenant_beside_an_honest_one_and_the_account_of_both,
    an_import_that_is_not_granted_is_refused_by_name,
    a_secret_is_shown_nowhere,
    fr_31_a_narrowed_grant_holds_from_the_next_call_on,
    c_18_a_tenant_receives_no_faster_than_its_rate,
    what_is_in_force_is_printed,
    an_invocation_is_granted_what_the_command_line_says,
}

/// The end of a start that fails: its components are compiled before, at the lowest priority.
const COMPILED: Duration = Duration::from_secs(180);

/// `examples/tenants.toml` from its tenants on, its components where the tests build them.
fn example() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tenants.toml");
    let text = fs::read_to_string(path).unwrap();
    let tenants = text.find("[tenants.").unwrap();
    text[tenants..].replace("../guests/target/wasm32-wasip2/release", "{guests}")
}

fn api(scene: &Scene, path: &str) -> Value {
    let began = Instant::now();
    let answer = get(&format!("{}{path}", scene.admin())).unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{path} took {:?} (FR-20)", began.elapsed());
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json()
}

fn accounts_of(host: &Host, tenant: &str) -> Vec<Line> {
    let lines = host.log.saying("tenant account").into_iter();
    lines.filter(|line| line.field("tenant") == tenant).collect()
}

fn sum_of(lines: &[Line], field: &str) -> u64 {
    lines.iter().map(|line| line.number(field).unwrap()).sum()
}

/// FR-20: the example with one tenant's handler replaced by an endless loop. The other's messages are all handled, the
/// admin side answers, and each has its account: in the API, in the metrics, in the log.
fn fr_20_an_endless_tenant_beside_an_honest_one_and_the_account_of_both() {
    let text = example()
        .replace("{guests}/greeter.wasm", "{guests}/hostile_loop.wasm")
        .replace("max_deliveries = 3", "max_deliveries = 2")
        // The honest one is not to be late on a machine that has much else to do.
        .replace("deadline = \"2s\"", "deadline = \"20s\"");
    let scene = Scene::with_host("account_interval = \"1s\"\nlog.level = \"debug\"", &text);
    let host = scene.start();
    scene.publish_all("greetings", &[], &vec![json!("any"); 12]);
    host.until(LONG, "loops under way", || {
        host.status_of("subscriptions", "greetings")["in_flight"].as_u64() > Some(0)
    });
    let order = json!({ "id": "A-1", "quantity": 2 });
    scene.publish_all("orders", &[], &vec![order; 100]);
    let acks = |host: &Host| {
        let labels = [("subscription", "orders"), ("outcome", "ack")];
        host.metrics().sum("pumphouse_deliveries_total", &labels)
    };
    host.until(LONG, "every order", || {
        api(&scene, "/v1/tenants");
        acks(&host) == 100.0
    });
    assert_eq!(scene.peek("orders").len() + scene.peek("orders-dead-letter").len(), 0);
    host.until(LONG, "every loop cut", || scene.peek("greetings-dead-letter").len() == 12);

    let tenant = |name: &str| api(&scene, &format!("/v1/tenants/{name}"));
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    assert_eq!((&acme["account"]["acks"], &acme["account"]["faults"]), (&json!(100), &json!({})));
    assert_eq!(acme["limits"]["weight"], "300");
    // Each was called twice; a call that the other's share left without a processor is no fault of its limit.
    let faults = globex["account"]["faults"].as_object().unwrap();
    let total: u64 = faults.values().filter_map(Value::as_u64).sum();
    assert_eq!(total, globex["account"]["calls"].as_u64().unwrap(), "{globex:#}");
    assert!(
        faults.keys().all(|kind| ["cpu", "deadline", "starved"].contains(&kind.as_str())),
        "{globex:#}"
    );
    assert!(globex["account"]["cpu_seconds"].as_f64() > Some(0.5), "{globex:#}");
    let handlers = api(&scene, "/v1/handlers?tenant=globex");
    let greeter = &handlers["handlers"][0];
    assert_eq!(greeter["grants"], json!(["logging", "config.greeting"]));
    assert_eq!(
        (&greeter["limits"]["cpu"], &greeter["account"]["acks"]),
        (&json!("200ms"), &json!(0))
    );

    let metrics = host.metrics();
    let calls = |tenant, handler, outcome| {
        let labels = [("tenant", tenant), ("handler", handler), ("outcome", outcome)];
        metrics.sum("pumphouse_guest_calls_total", &labels)
    };
    assert_eq!(calls("acme", "acme/orders", "ack"), 100.0);
    assert_eq!(calls("globex", "globex/greeter", "fault"), total as f64);
    let cpu = metrics.sum("pumphouse_guest_cpu_seconds_total", &[("tenant", "globex")]);
    assert!(cpu > 0.5, "{cpu}");

    let ran = scene.command("tenants", &[]).ok();
    assert!(ran.stdout.contains("acme") && ran.stdout.contains("globex"), "{ran:#?}");
    let ran = scene.command("tenants", &["--json", "--handlers", "acme"]).ok();
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(listed["handlers"][0]["account"]["acks"], 100);

    host.until(LONG, "lines that add up", || {
        sum_of(&accounts_of(&host, "acme"), "messages") == 100
            && sum_of(&accounts_of(&host, "globex"), "faults") == total
    });
    let lines = accounts_of(&host, "globex");
    assert!(sum_of(&lines, "cpu_ms") > 400, "{lines:#?}");
    assert!(lines.iter().all(|line| line.field("level") == "INFO"), "{lines:#?}");
    for field in ["memory_peak", "host_calls", "bytes_in", "bytes_out", "log_dropped", "waited_ms"]
    {
        assert!(lines[0].number(field).is_some(), "{field}: {:?}", lines[0]);
    }
    assert!(!host.log.saying("handler account").is_empty(), "at debug, by handler too");
    assert_eq!(host.stop(), 0);
}

/// What a component imports and is not granted ends its deploy, with the import and the grant that would allow it: at
/// the start, and at a reload, where the version in use goes on.
fn an_import_that_is_not_granted_is_refused_by_name() {
    let granted = example();
    let refused = granted.replace("config = { greeting = \"Good morning\" }\n", "");
    let scene = Scene::new(&refused);
    let mut host = scene.spawn();
    assert_eq!(host.wait_exit(COMPILED), 1);
    let said = host.log.text();
    assert!(said.contains("wasi:config") && said.contains("grants.config"), "{said}");
    assert!(said.contains("globex/greeter"), "{said}");

    scene.configure(&granted);
    let host = scene.start();
    scene.configure(&refused);
    host.until(LONG, "the reload refused", || {
        let problem =
            host.status()["configuration_problem"].as_str().unwrap_or_default().to_owned();
        problem.contains("wasi:config") && problem.contains("grants.config")
    });
    let id = scene.publish("greetings", &json!("all"));
    host.until(LONG, "a greeting by the version in use", || {
        scene.guest_said("Good morning, all!").contains(&id)
    });
    assert_eq!(host.stop(), 0);
}

/// A handler that gives its secret away in every way it can: in its log, its settings, a panic, an exit, a rejection.
/// The value is in no log, no fault, no copy, not in `check`, the API or the metrics.
fn a_secret_is_shown_nowhere() {
    const SECRET: &str = "e2e-s3cr3t-7f3a91c0";
    let mut scene = Scene::with_host(
        "account_interval = \"1s\"\nlog.level = \"debug\"",
        r#"
[tenants.acme.handlers.work]
component = "{guests}/secrets.wasm"

[tenants.acme.handlers.work.grants]
logging = true
config = { url = { env = "ACME_TOKEN" } }
secrets = { token = { env = "ACME_TOKEN" } }

[subscriptions.work]
source = { embedded.queue = "work" }
handler = "acme/work"
max_deliveries = 1
dead_letter = { embedded.queue = "dead" }
"#,
    );
    // Without the variable the host does not start, and says which is missing.
    let mut host = scene.spawn();
    assert_eq!(host.wait_exit(COMPILED), 1);
    assert!(host.log.text().contains("ACME_TOKEN"), "{}", host.log.text());
    scene.set("ACME_TOKEN", SECRET);
    let host = scene.start();
    let ways = [
        "log", "context", "setting", "print", "long", "panic", "exit", "reject", "length", "other",
        "unknown",
    ];
    let bodies: Vec<Value> = ways.iter().map(|way| json!(way)).collect();
    scene.publish_all("work", &[], &bodies);
    host.until(LONG, "all handled", || {
        api(&scene, "/v1/tenants/acme")["account"]["calls"].as_u64() >= Some(ways.len() as u64)
            && scene.peek("work").is_empty()
    });
    host.until(LONG, "an account", || !accounts_of(&host, "acme").is_empty());
    let copies = scene.peek("dead");
    // The handler did get it: it told its length.
    assert!(
        copies.iter().any(|copy| header(copy, "rejectionMessage") == SECRET.len().to_string()),
        "{copies:#?}"
    );
    let shown = [
        host.log.text(),
        host.metrics().0,
        host.status().to_string(),
        api(&scene, "/v1/tenants").to_string(),
        api(&scene, "/v1/handlers/acme/work").to_string(),
        scene.command("check", &[]).ok().stdout,
        scene.command("check", &["--json"]).ok().stdout,
        scene.command("tenants", &["--json"]).ok().stdout,
        json!(copies).to_string(),
    ];
    for (place, text) in shown.iter().enumerate() {
        assert!(!text.contains(SECRET), "place {place}:\n{text}");
    }
    assert!(shown[4].contains("secrets.token") && shown[5].contains("secrets.token"));
    assert_eq!(host.stop(), 0);
}

/// FR-31: a host that is no longer granted is refused from the next call on, without a restart of the process.
fn fr_31_a_narrowed_grant_holds_from_the_next_call_on() {
    let text = |grants: &str| {
        format!(
            r#"
[tenants.acme.handlers.work]
component = "{{guests}}/http.wasm"
grants.http = [{grants}]

[subscriptions.work]
source = {{ embedded.queue = "work" }}
handler = "acme/work"
max_deliveries = 1
dead_letter = {{ embedded.queue = "dead" }}
"#
        )
    };
    let scene = Scene::new(&text(""));
    let own = format!(
        "{{ host = \"127.0.0.1\", scheme = \"http\", port = {}, private = true }}",
        scene.port()
    );
    scene.configure(&text(&format!("{own}, {{ host = \"example.com\" }}")));
    let host = scene.start();
    let request = json!({ "requests": [{ "authority": format!("127.0.0.1:{}", scene.port()), "path": "/healthz" }] });
    let asked = |times: usize| {
        scene.publish("work", &request);
        host.until(LONG, "an answer", || scene.peek("dead").len() == times);
        let copies = scene.peek("dead");
        header(&copies[times - 1], "rejectionMessage").to_owned()
    };
    let answer = asked(1);
    assert!(answer.contains("200") && answer.contains("alive"), "{answer}");
    scene.configure(&text("{ host = \"example.com\" }"));
    host.until(LONG, "the reload", || !host.log.saying("configuration reloaded").is_empty());
    let answer = asked(2);
    assert!(answer.contains("error") && !answer.contains("alive"), "{answer}");
    assert_eq!(
        api(&scene, "/v1/handlers/acme/work")["grants"],
        json!(["http GET, HEAD https://example.com"])
    );
    assert_eq!(host.stop(), 0);
}

/// C-18: two subscriptions of one tenant receive no faster than its rate together; another tenant does not notice.
fn c_18_a_tenant_receives_no_faster_than_its_rate() {
    let handler = |tenant: &str, limits: &str| {
        format!(
            "[tenants.{tenant}.limits]\nmemory = \"16MiB\"\n{limits}\n[tenants.{tenant}.handlers.work]\ncomponent = \"{{guests}}/conformance.wasm\"\ngrants.logging = true\n"
        )
    };
    let subscription = |name: &str, tenant: &str| {
        format!(
            "[subscriptions.{name}]\nsource = {{ embedded.queue = \"{name}\" }}\nhandler = \"{tenant}/work\"\n"
        )
    };
    let text = handler("slow", "messages_rate = 20")
        + &handler("quick", "")
        + &subscription("one", "slow")
        + &subscription("two", "slow")
        + &subscription("three", "quick");
    let scene = Scene::new(&text);
    let host = scene.start();
    let quick = scene.publish_all("three", &[], &vec![done(); 100]);
    host.until(LONG, "the quick tenant's", || {
        set(&quick).is_subset(&set(&scene.guest_said("done")))
    });
    let began = Instant::now();
    let mut slow = scene.publish_all("one", &[], &vec![done(); 60]);
    slow.extend(scene.publish_all("two", &[], &vec![done(); 60]));
    host.until(LONG, "the slow tenant's", || set(&slow).is_subset(&set(&scene.guest_said("done"))));
    let took = began.elapsed();
    // 120 at 20 a second, less one second's that was saved up and what several receives brought at once.
    assert!(took > Duration::from_millis(3_500), "{took:?}");
    let metrics = host.metrics();
    assert_eq!(metrics.sum("pumphouse_given_back_total", &[]), 0.0);
    assert!(scene.calls().iter().all(|call| call.count == 0));
    assert_eq!(api(&scene, "/v1/tenants/slow")["limits"]["messages_rate"], "20 a second");
    assert_eq!(host.stop(), 0);
}

/// `check` says of every tenant and handler what it may use and what it is granted, for people and for programs.
fn what_is_in_force_is_printed() {
    let scene = Scene::new(&example());
    let ran = scene.command("check", &[]).ok();
    for said in [
        "tenant acme",
        "limits.weight",
        "handler globex/greeter",
        "config.greeting",
        "0 errors, 0 warnings",
    ] {
        assert!(ran.stdout.contains(said), "{said} in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("Good morning"), "a value: {}", ran.stdout);
    let ran = scene.command("check", &["--json"]).ok();
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["tenants"][0]["limits"]["messages_rate"], "500 a second");
    assert_eq!(said["handlers"][1]["grants"], json!(["logging", "config.greeting"]));
    let wrong =
        example().replace("weight = 300", "weight = 0").replace("instances = 64", "instances = 65");
    scene.configure(&wrong);
    let ran = scene.command("check", &[]);
    assert!(
        ran.stdout.contains("host.pool_slots = 64") && ran.stdout.contains("2 errors"),
        "{ran:#?}"
    );
}

/// `invoke` grants a secret by reference and a host by name, and nothing that is not said.
fn an_invocation_is_granted_what_the_command_line_says() {
    const SECRET: &str = "e2e-s3cr3t-0b5d";
    let mut scene = Scene::new(&example());
    scene.set("ACME_TOKEN", SECRET);
    let invoke = |name: &str, body: &Value, rest: &[&str]| -> Ran {
        let message = scene.path("message.json");
        fs::write(&message, json!({ "body": body.to_string() }).to_string()).unwrap();
        let component = guest(name);
        let mut command =
            scene.pumphouse(&["invoke".as_ref(), component.as_os_str(), message.as_os_str()]);
        run_within(COMPILED, command.args(rest).arg("--json"), "")
    };
    let http = json!({ "requests": [{ "authority": "127.0.0.1:9", "path": "/" }] });
    let ran = invoke("http", &http, &["--http", "http://127.0.0.1:9"]).ok();
    assert!(ran.stdout.contains("DestinationIpProhibited"), "{ran:#?}");
    let ran = invoke("http", &http, &["--http", "http://127.0.0.1:9", "--http-private"]).ok();
    assert!(ran.stdout.contains("ConnectionRefused"), "{ran:#?}");
    let ran = invoke("http", &http, &[]);
    assert!(ran.stderr.contains("grants.http"), "{ran:#?}");
    // The body is a JSON text here, which the guest does not know: it names what it was told, and not its secret.
    let granted = ["--logging", "--config", "url=x", "--secret", "token=env:ACME_TOKEN"];
    let ran = invoke("secrets", &json!("length"), &granted).ok();
    assert!(ran.stdout.contains("unknown") && !ran.stdout.contains(SECRET), "{ran:#?}");
    let ran = invoke("secrets", &json!("length"), &["--secret", &format!("token={SECRET}")]);
    assert!(
        !format!("{ran:?}").contains(SECRET) && ran.stderr.contains("env:VARIABLE"),
        "{ran:#?}"
    );
}
