//! What may not be in a log, and what a running host shows of itself.

use pumphouse_e2e::{LONG, Scene};
use serde_json::{Value, json};

use crate::common::{WORK, done, work};

pumphouse_e2e::tests! {
    a_body_is_in_no_log_at_any_level,
    a_guest_forges_no_line_of_json,
    a_guest_forges_no_line_of_text,
    a_guest_floods_no_log,
    a_trace_goes_through_to_the_log,
    metrics_and_readiness_say_what_happened,
    nothing_is_started_while_anything_is_wrong,
}

const DESTINATIONS: &str = "max_deliveries = 2\nretry = { backoff = \"100ms\" }\ndead_letter = { embedded.queue = \"dead\" }\ninvalid_message = { embedded.queue = \"invalid\" }";

/// A body is in no line, whatever becomes of its message, and however much is logged.
fn a_body_is_in_no_log_at_any_level() {
    const MARK: &str = "body-mark-5eb63bbbe01eeed0";
    let scene = Scene::with_host("log.level = \"trace\"", &work(DESTINATIONS));
    let host = scene.start();
    for command in [
        json!({ "do": "ack", "mark": MARK }),
        json!({ "do": "defer", "mark": MARK }),
        json!({ "do": "reject", "reason": "unacceptable", "text": "no", "mark": MARK }),
        json!({ "do": "reject", "reason": "delivery-error", "text": "no", "mark": MARK }),
        json!({ "do": "trap", "text": "on purpose", "mark": MARK }),
        json!({ "do": "loop", "mark": MARK }),
        Value::from(format!("plain {MARK}")),
    ] {
        scene.publish("work", &command);
    }
    host.until(LONG, "everything settled", || {
        scene.peek("work").is_empty() && scene.peek("dead").len() == 4
    });
    // It is where it belongs.
    assert!(scene.peek("dead").iter().all(|copy| copy.to_string().contains(MARK)));
    assert_eq!(host.stop(), 0);
    let text = scene.logs()[0].text();
    assert!(text.lines().count() > 30, "{text}");
    assert!(!text.contains(MARK), "{}", text.lines().find(|line| line.contains(MARK)).unwrap());
}

fn forging(format: &str) -> String {
    let scene = Scene::with_host(
        &format!("log.level = \"trace\"\nlog.format = \"{format}\""),
        &work(DESTINATIONS).replace("conformance.wasm", "hostile_forge.wasm"),
    );
    let host = scene.start();
    scene.publish("work", &json!("any"));
    host.until(LONG, "the rejection", || scene.peek("invalid").len() == 1);
    assert_eq!(host.stop(), 0);
    let text = scene.logs()[0].text();
    assert!(text.contains("FORGED"), "the guest's lines are in the log");
    text
}

/// A guest's text ends no line of JSON, and adds no field to one.
fn a_guest_forges_no_line_of_json() {
    for line in forging("json").lines() {
        let value: Value = serde_json::from_str(line).expect(line);
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert!(!keys.iter().any(|key| key.contains("FORGED")), "{line}");
        assert!(!value["message"].as_str().unwrap().contains("FORGED"), "{line}");
        if line.contains("FORGED") {
            assert_ne!(value["level"], "ERROR", "{line}");
        }
    }
}

/// Nor a line of text: each begins with the host's own time, and holds nothing that moves a cursor.
fn a_guest_forges_no_line_of_text() {
    for line in forging("text").split('\n').filter(|line| !line.is_empty()) {
        let time = line.split_whitespace().next().unwrap_or_default();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line:?}");
        let moves = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}');
        assert!(!line.chars().any(moves), "{line:?}");
    }
}

/// A guest that floods is ended by its budget, and its log is as long as that.
fn a_guest_floods_no_log() {
    let text = work(DESTINATIONS).replace("conformance.wasm", "hostile_flood.wasm");
    let scene = Scene::new(&text.replace("deadline = \"2s\"", "deadline = \"20s\""));
    let host = scene.start();
    scene.publish("work", &json!("any"));
    host.until(LONG, "the rejection", || scene.peek("dead").len() == 1);
    assert_eq!(host.stop(), 0);
    let faults = scene.logs()[0].saying("handler gave no answer");
    assert!(faults.iter().all(|line| line.field("fault") == "log-budget"), "{faults:?}");
    let lines = scene.lines().iter().filter(|line| line.is_guests()).count();
    // Two calls, each with a thousand lines at most.
    assert!((1_001..=2_000).contains(&lines), "{lines}");
}

/// W3C trace context of a header is in the lines about its message.
fn a_trace_goes_through_to_the_log() {
    let scene = Scene::new(&work(DESTINATIONS));
    let host = scene.start();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header = format!("traceparent=00-{trace}-00f067aa0ba902b7-01");
    let reject = json!({ "do": "reject", "text": "no" });
    scene.publish_keyed("work", &["--header", &header], &reject);
    host.until(LONG, "the copy", || scene.peek("dead").len() == 1);
    let lines = host.log.lines();
    for line in [
        lines.iter().find(|line| line.field("message") == "rejected message routed").unwrap(),
        lines.iter().find(|line| line.is_guests()).unwrap(),
    ] {
        assert_eq!(line.field("trace_id"), trace, "{line:?}");
    }
    assert_eq!(host.stop(), 0);
}

/// The metrics of one message of each kind, and readiness before, while and after.
fn metrics_and_readiness_say_what_happened() {
    let scene = Scene::new(&work(DESTINATIONS));
    let mut host = scene.spawn();
    let mut seen = Vec::new();
    host.until(LONG, "readiness", || {
        seen.push(host.readiness());
        seen.last() == Some(&200)
    });
    assert!(seen.iter().all(|status| [0, 503, 200].contains(status)), "{seen:?}");
    for body in [
        done(),
        json!({ "do": "reject", "reason": "unacceptable" }),
        json!({ "do": "trap" }),
        json!({ "do": "sequence", "steps": ["defer", "ack"] }),
    ] {
        scene.publish("work", &body);
    }
    host.until(LONG, "all settled", || {
        scene.peek("work").is_empty() && scene.peek("dead").len() == 1
    });
    let metrics = host.metrics();
    let of = |name: &str, labels: &[(&str, &str)]| {
        let own = [("subscription", "work"), ("tenant", "acme"), ("handler", "acme/work")];
        metrics.sum(name, &[&own[..], labels].concat())
    };
    assert_eq!(of("pumphouse_deliveries_total", &[("outcome", "ack")]), 2.0);
    assert_eq!(of("pumphouse_deliveries_total", &[("outcome", "defer")]), 2.0);
    assert_eq!(of("pumphouse_deliveries_total", &[("outcome", "reject")]), 2.0);
    assert_eq!(of("pumphouse_deliveries_total", &[("reason", "unacceptable")]), 1.0);
    assert_eq!(of("pumphouse_deliveries_total", &[("redelivered", "true")]), 2.0);
    assert_eq!(of("pumphouse_faults_total", &[("kind", "trap")]), 2.0);
    assert_eq!(of("pumphouse_dead_letter_messages_total", &[]), 2.0);
    assert_eq!(of("messaging_client_consumed_messages_total", &[]), 6.0);
    assert_eq!(of("messaging_process_duration_seconds_count", &[]), 6.0);
    assert_eq!(metrics.sum("pumphouse_subscription_ready", &[("subscription", "work")]), 1.0);
    assert_eq!(metrics.sum("pumphouse_inflight", &[("subscription", "work")]), 0.0);
    assert!(metrics.has("pumphouse_oldest_in_progress_age_seconds"));
    assert!(metrics.has("pumphouse_handler_version_info"));
    assert_eq!(metrics.plain("pumphouse_config_rejected"), Some(0.0));
    host.signal(pumphouse_e2e::Signal::TERM);
    assert_eq!(host.wait_exit(LONG), 0);
    assert_eq!(host.readiness(), 0);
}

/// A subscription's handler file that is not there ends the start before anything is begun, with every problem.
fn nothing_is_started_while_anything_is_wrong() {
    let scene =
        Scene::new(&(WORK.replace("conformance.wasm", "nowhere.wasm") + &work("")[WORK.len()..]));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stderr.contains("nowhere.wasm"), "{ran:#?}");
    assert!(!scene.path("state/host.lock").exists());
}
