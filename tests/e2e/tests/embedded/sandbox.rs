//! Handlers that misbehave, beside others that don't, in one process.

use std::time::{Duration, Instant};

use pumphouse_e2e::{Host, LONG, Scene, get, resident};
use serde_json::{Value, json};

use crate::common::{done, header, originals, set, slowly_done};

pumphouse_e2e::tests! {
    fr_19_the_deadline_covers_host_calls,
    fr_20_a_busy_tenant_starves_nobody,
    fr_21_a_memory_limit_is_a_real_one,
    fr_22_one_fault_never_fails_the_next_message,
    fr_23_more_work_than_slots_waits,
    fr_24_a_guest_gets_nothing_that_it_was_not_given,
}

/// A tenant with one handler and one subscription of the same name.
fn tenant(name: &str, guest: &str, limits: &str, rest: &str) -> String {
    format!(
        r#"
[tenants.{name}]
limits = {{ {limits} }}

[tenants.{name}.handlers.{name}]
component = "{{guests}}/{guest}.wasm"
grants.logging = true

[subscriptions.{name}]
source = {{ embedded.queue = "{name}" }}
handler = "{name}/{name}"
{rest}
"#
    )
}

fn faults(host: &Host, subscription: &str, kind: &str) -> f64 {
    host.metrics().sum("pumphouse_faults_total", &[("subscription", subscription), ("kind", kind)])
}

/// FR-19: a busy loop, a sleep and a wait for a pollable all end at the deadline, host calls included; the slots are
/// free again.
fn fr_19_the_deadline_covers_host_calls() {
    let text: String = [
        ("looping", "hostile_loop"),
        ("sleeping", "hostile_sleep"),
        ("polling", "hostile_poll"),
    ]
    .iter()
    .map(|(name, guest)| {
        let rest =
            "concurrency = 1\non_fault = \"reject\"\ndead_letter = { embedded.queue = \"dead\" }";
        tenant(name, guest, "memory = \"16MiB\", deadline = \"1s\"", rest)
    })
    .collect();
    let scene = Scene::new(&text);
    let host = scene.start();
    for name in ["looping", "sleeping", "polling"] {
        scene.publish_all(name, &[], &vec![json!("any"); 3]);
    }
    host.until(LONG, "every call cut", || originals(&scene, "dead").len() == 9);
    for name in ["looping", "sleeping", "polling"] {
        assert_eq!(faults(&host, name, "deadline"), 3.0, "{name}");
        let labels = [("subscription", name)];
        let took = host.metrics().sum("messaging_process_duration_seconds_sum", &labels);
        // Three calls of 1 s each, on a busy machine.
        assert!((2.9..6.0).contains(&took), "{name} took {took} s");
    }
    for copy in scene.peek("dead") {
        assert!(header(&copy, "rejectionMessage").contains("deadline"), "{copy:#}");
    }
    assert_eq!(host.stop(), 0);
}

/// FR-20: one tenant loops on more calls than there are cores; the other tenant's messages, an honest slow one's
/// leases and the admin side stay on time.
fn fr_20_a_busy_tenant_starves_nobody() {
    let scene = Scene::new(
        &[
            tenant(
                "busy",
                "hostile_loop",
                "memory = \"16MiB\", deadline = \"4s\"",
                "concurrency = 16",
            ),
            tenant("quick", "conformance", "memory = \"16MiB\", deadline = \"10s\"", ""),
            tenant(
                "slow",
                "conformance",
                "memory = \"16MiB\", deadline = \"20s\"",
                "concurrency = 4",
            ),
        ]
        .concat(),
    );
    let host = scene.start();
    scene.publish_all("busy", &[], &vec![json!("any"); 16]);
    let in_flight = || host.status_of("subscriptions", "busy")["in_flight"].as_u64();
    // Sixteen wait; the tenant receives as many as it may compute with (C-18).
    host.until(LONG, "loops on every core", || in_flight() >= Some(3));
    let slow = scene.publish_all("slow", &[], &vec![slowly_done(1_500); 4]);
    let began = Instant::now();
    let quick = scene.publish_all("quick", &[], &vec![done(); 100]);
    let mut answers = Vec::new();
    host.until(LONG, "the quick tenant's messages", || {
        let asked = Instant::now();
        for path in ["status", "metrics", "healthz"] {
            assert_eq!(get(&format!("{}/{path}", scene.admin())).map(|a| a.status), Some(200));
        }
        answers.push(asked.elapsed() / 3);
        set(&quick).is_subset(&set(&scene.guest_said("done")))
    });
    let took = began.elapsed();
    host.until(LONG, "the slow tenant's", || set(&slow).is_subset(&set(&scene.guest_said("done"))));
    host.until(LONG, "loops cut", || {
        faults(&host, "busy", "deadline") + faults(&host, "busy", "starved") >= 8.0
    });
    // Ten seconds on four cores; here there may be two, and other tests on them.
    assert!(took < Duration::from_secs(20), "a hundred short messages took {took:?}");
    answers.sort();
    assert!(answers[answers.len() / 2] < Duration::from_secs(1), "{answers:?}");
    let metrics = host.metrics();
    assert_eq!(metrics.sum("pumphouse_lease_lost_total", &[]), 0.0);
    let again = [("subscription", "slow"), ("redelivered", "true")];
    assert_eq!(metrics.sum("pumphouse_deliveries_total", &again), 0.0);
    host.kill();
}

/// FR-21: eight calls that take all the memory they get stay within the limit, and others go on.
fn fr_21_a_memory_limit_is_a_real_one() {
    let rest =
        "concurrency = 8\non_fault = \"reject\"\ndead_letter = { embedded.queue = \"dead\" }";
    let limits = "memory = \"16MiB\", deadline = \"20s\"";
    let scene = Scene::new(
        &(tenant("greedy", "hostile_memory", limits, rest)
            + &tenant("modest", "conformance", limits, "")),
    );
    let host = scene.start();
    let before = resident(host.id());
    scene.publish_all("greedy", &[], &vec![json!("any"); 40]);
    let modest = scene.publish_all("modest", &[], &vec![done(); 20]);
    let mut most = 0;
    host.until(LONG, "every greedy call ended", || {
        most = most.max(resident(host.id()));
        originals(&scene, "dead").len() == 40
    });
    host.until(LONG, "the others", || set(&modest).is_subset(&set(&scene.guest_said("done"))));
    // 8 × 16 MiB, and what a process needs.
    assert!(most < before + (8 * 16 + 96) * (1 << 20), "{before} bytes became {most}");
    let line = &host.log.saying("handler gave no answer")[0];
    assert_eq!((line.field("subscription"), line.field("fault")), ("greedy", "memory"));
    assert!(line.field("detail").contains("limits.memory"), "{line:?}");
    assert_eq!(faults(&host, "greedy", "memory"), 40.0);
    assert_eq!(host.stop(), 0);
}

/// FR-22: after a trap or a cut-off, the next message succeeds at its first try.
fn fr_22_one_fault_never_fails_the_next_message() {
    let rest =
        "concurrency = 1\non_fault = \"reject\"\ndead_letter = { embedded.queue = \"dead\" }";
    let scene = Scene::new(&tenant(
        "acme",
        "conformance",
        "memory = \"16MiB\", deadline = \"500ms\"",
        rest,
    ));
    let host = scene.start();
    let trap = json!({ "do": "trap", "text": "on purpose" });
    let endless = json!({ "do": "loop" });
    let bodies: Vec<Value> = (0..50)
        .flat_map(|n| [if n % 10 == 0 { endless.clone() } else { trap.clone() }, done()])
        .collect();
    let ids = scene.publish_all("acme", &[], &bodies);
    let good: Vec<String> = ids.iter().skip(1).step_by(2).cloned().collect();
    host.until(LONG, "all handled", || {
        set(&good).is_subset(&set(&scene.guest_said("done"))) && scene.peek("acme").is_empty()
    });
    assert_eq!(scene.guest_said("done").len(), 50);
    assert!(scene.calls().iter().all(|call| call.count == 0));
    assert_eq!(faults(&host, "acme", "trap"), 45.0);
    assert_eq!(faults(&host, "acme", "deadline") + faults(&host, "acme", "starved"), 5.0);
    assert!(!host.log.text().contains("cannot enter component instance"));
    assert_eq!(host.stop(), 0);
}

/// FR-23: more work than instance slots waits, and spends no delivery.
fn fr_23_more_work_than_slots_waits() {
    let text =
        tenant("acme", "conformance", "memory = \"16MiB\", deadline = \"20s\"", "concurrency = 64");
    let scene = Scene::with_host("# four slots", &text);
    let config = std::fs::read_to_string(scene.config()).unwrap();
    std::fs::write(scene.config(), config.replace("pool_slots = 64", "pool_slots = 4")).unwrap();
    let host = scene.start();
    let ids = scene.publish_all("acme", &[], &vec![slowly_done(20); 200]);
    host.until(LONG, "all handled", || set(&scene.guest_said("done")) == set(&ids));
    assert!(scene.calls().iter().all(|call| call.count == 0));
    let metrics = host.metrics();
    assert_eq!(metrics.sum("pumphouse_faults_total", &[]), 0.0);
    assert_eq!(metrics.sum("pumphouse_given_back_total", &[]), 0.0);
    assert_eq!(host.stop(), 0);
}

/// FR-24: a guest sees nothing of the host that it was not given, secrets in the environment least of all.
fn fr_24_a_guest_gets_nothing_that_it_was_not_given() {
    const SECRET: &str = "e2e-secret-d41d8cd98f";
    let rest = "invalid_message = { embedded.queue = \"invalid\" }\ndead_letter = { embedded.queue = \"dead\" }";
    let mut scene =
        Scene::new(&tenant("acme", "hostile_probe", "memory = \"16MiB\", deadline = \"5s\"", rest));
    scene.set("DATABASE_PASSWORD", SECRET);
    scene.set("AWS_SECRET_ACCESS_KEY", SECRET);
    let host = scene.start();
    scene.publish("acme", &json!("any"));
    let copy = host.until_some(LONG, "what it found", || scene.peek("invalid").pop());
    let found = header(&copy, "rejectionMessage");
    assert!(found.lines().count() >= 10, "{found}");
    for line in found.lines() {
        assert!(line.ends_with("=0") || line.ends_with("=denied"), "{line}");
    }
    assert!(!copy.to_string().contains(SECRET));
    assert!(!host.log.text().contains(SECRET));
    assert!(!host.metrics().0.contains(SECRET));
    assert_eq!(host.stop(), 0);
}
