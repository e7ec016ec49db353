//! The way of somebody who is new here: `pumphouse new`, test, build, try, deploy, publish, replace.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pumphouse_e2e::{LONG, Ran, Scene, digest, run_within};
use serde_json::Value;

pumphouse_e2e::tests! {
    a_newcomer_gets_from_nothing_to_a_swap,
}

/// What a first build may take on a busy machine.
const BUILDING: Duration = Duration::from_secs(240);

/// Cargo as a newcomer's shell would run it, in the project's own target folder.
fn cargo(project: &Path, arguments: &[&str]) -> Ran {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).current_dir(project);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") && !["CARGO_HOME"].contains(&text.as_ref()) {
            cargo.env_remove(&name);
        }
    }
    run_within(BUILDING, &mut cargo, "").ok()
}

const CONFIGURATION: &str = r#"
[tenants.acme]
limits = { memory = "16MiB", deadline = "2s" }

[tenants.acme.handlers.orders]
component = "orders/handler.wasm"

[subscriptions.orders]
source = { embedded.queue = "orders" }
handler = "acme/orders"
max_deliveries = 3
retry = { backoff = "100ms", max_backoff = "1s" }
dead_letter = { embedded.queue = "orders-dead-letter" }
invalid_message = { embedded.queue = "orders-invalid" }
"#;

/// The steps of docs/handlers.md, from nothing to a swap.
fn a_newcomer_gets_from_nothing_to_a_swap() {
    let scene = Scene::new(CONFIGURATION);
    let made = run_within(LONG, &mut scene.pumphouse(&["new", "orders"]), "").ok();
    assert!(made.stdout.contains("cargo build --release --target wasm32-wasip2"), "{made:#?}");
    let project = scene.path("orders");
    let tested = cargo(&project, &["test"]);
    assert!(tested.stdout.contains("3 passed"), "{tested:#?}");
    let _ = cargo(&project, &["build", "--release", "--target", "wasm32-wasip2"]);
    let component = project.join("target/wasm32-wasip2/release/orders.wasm");

    let message = project.join("message.json");
    let mut invoke =
        scene.pumphouse(&["invoke".as_ref(), component.as_os_str(), message.as_os_str()]);
    let invoked = run_within(LONG, &mut invoke, "").ok();
    assert!(invoked.stdout.contains("ack"), "{invoked:#?}");

    fs::copy(&component, project.join("handler.wasm")).unwrap();
    let checked = scene.command("check", &[]).ok();
    assert!(checked.stdout.contains("0 errors, 0 warnings"), "{checked:#?}");
    let host = scene.start();
    let publish = |body: &str| scene.publish("orders", &Value::from(body));
    publish(r#"{"id":"A-1","quantity":2}"#);
    publish("hello");
    publish(r#"{"id":"A-2","quantity":500}"#);
    host.until(LONG, "one at each place", || {
        let waiting = |queue| scene.peek(queue).len();
        waiting("orders") == 0
            && waiting("orders-invalid") == 1
            && waiting("orders-dead-letter") == 1
    });
    let acks = host.metrics().sum("pumphouse_deliveries_total", &[("outcome", "ack")]);
    assert_eq!(acks, 1.0);
    swap(&scene, &host, &project);
    assert_eq!(host.stop(), 0);
}

/// Changes the code, builds, copies over the old file.
fn swap(scene: &Scene, host: &pumphouse_e2e::Host, project: &Path) {
    let source = project.join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    assert!(text.contains("1..=100"), "{text}");
    fs::write(&source, text.replace("1..=100", "1..=1000")).unwrap();
    let _ = cargo(project, &["build", "--release", "--target", "wasm32-wasip2"]);
    let component = project.join("target/wasm32-wasip2/release/orders.wasm");
    fs::copy(&component, project.join("handler.wasm")).unwrap();
    let wanted = digest(&component);
    host.until(LONG, "the new version", || {
        scene.command("status", &[]).ok().stdout.contains(&wanted)
    });
    scene.publish("orders", &Value::from(r#"{"id":"A-3","quantity":500}"#));
    host.until(LONG, "an ack by the new version", || {
        host.metrics().sum("pumphouse_deliveries_total", &[("outcome", "ack")]) == 2.0
    });
}
