use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::*;

/// Keeps what is written.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Every line that `log` made.
fn lines(format: LogFormat, filter: &str, log: impl FnOnce()) -> Vec<String> {
    let kept = Kept::default();
    let writer = kept.clone();
    let layer = layer(format, false, false, move || writer.clone());
    tracing::subscriber::with_default(subscriber(parse("", filter).unwrap(), layer), log);
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines().map(ToOwned::to_owned).collect()
}

fn one_line(format: LogFormat, log: impl FnOnce()) -> String {
    let lines = lines(format, "info", log);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

fn json(log: impl FnOnce()) -> Value {
    serde_json::from_str(&one_line(LogFormat::Json, log)).unwrap()
}

/// What a guest or a broker might say to forge a line, in both of our formats.
const FORGERY: &str = "no\n2026-11-30T02:50:14Z ERROR pumphouse: gone\r\u{1b}[2K\u{2028}{\"level\":\"ERROR\"}\u{0}\u{9b}1m\u{202e}\" outcome=\"ack";

fn everywhere(text: &str) {
    let span = tracing::info_span!("process", subscription = "orders", message_id = %text, late = tracing::field::Empty);
    span.record("late", text);
    let _entered = span.enter();
    let error = std::io::Error::other(text.to_owned());
    tracing::warn!(display = %text, debug = ?text, plain = text, error = &error as &dyn std::error::Error, "{text}");
}

#[test]
fn no_value_can_forge_a_line_of_text() {
    let line = one_line(LogFormat::Text, || everywhere(FORGERY));
    let odd: Vec<char> = line.chars().filter(|c| c.is_control() || !c.is_ascii()).collect();
    assert!(odd.is_empty(), "{odd:?} in {line}");
    assert!(line.contains(r"no\n2026"), "{line}");
    // Within quotation marks a quotation mark is escaped, so that no field is forged either.
    assert!(line.contains(r#"plain="no\n"#) && line.contains(r#"\" outcome=\"ack""#), "{line}");
}

#[test]
fn no_value_can_forge_a_line_of_json() {
    let line = json(|| everywhere(FORGERY));
    for field in ["message", "message_id", "late", "display", "plain", "error"] {
        assert_eq!(line[field], FORGERY, "{field}");
    }
    assert_eq!(line["level"], "WARN");
}

#[test]
fn a_line_of_text_is_readable() {
    let line = one_line(LogFormat::Text, || {
        let _span = tracing::info_span!("process", subscription = "orders", attempt = 2).entered();
        tracing::info!(
            message_id = "m-1",
            took = 1.5,
            text = "two words",
            empty = "",
            "message acknowledged"
        );
    });
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.ends_with('Z'), "{line}");
    let expected = format!(
        "INFO process{{subscription=orders attempt=2}}: {}: message acknowledged message_id=m-1 took=1.5 text=\"two words\" empty=\"\"",
        module_path!()
    );
    assert_eq!(rest.trim_start(), expected);
}

#[test]
fn a_line_of_json_holds_the_fields_of_its_spans() {
    let line = json(|| {
        let outer = tracing::info_span!("poll", subscription = "orders", attempt = 1);
        let _outer = outer.entered();
        let inner = tracing::info_span!(
            "process",
            message_id = "m-1",
            attempt = 2,
            trace_id = tracing::field::Empty
        );
        inner.record("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736");
        let _inner = inner.entered();
        tracing::info!(
            outcome = "ack",
            redelivered = true,
            count = 3_u64,
            level = "odd",
            "message acknowledged"
        );
    });
    let expected = [
        ("level", Value::from("INFO")),
        ("message", Value::from("message acknowledged")),
        ("target", Value::from(module_path!())),
        ("subscription", Value::from("orders")),
        ("message_id", Value::from("m-1")),
        ("trace_id", Value::from("4bf92f3577b34da6a3ce929d0e0e4736")),
        ("attempt", Value::from(2)),
        ("outcome", Value::from("ack")),
        ("redelivered", Value::from(true)),
        ("count", Value::from(3)),
        ("level_", Value::from("odd")),
    ];
    for (field, value) in &expected {
        assert_eq!(line[*field], *value, "{field} of {line}");
    }
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    assert_eq!(line.as_object().unwrap().len(), expected.len() + 1, "{line}");
}

#[derive(Debug, thiserror::Error)]
#[error("settling failed")]
struct Outer(#[source] std::io::Error);

#[test]
fn an_error_is_shown_with_its_causes() {
    let error = Outer(std::io::Error::other("connection reset"));
    let line = json(|| tracing::warn!(error = &error as &dyn std::error::Error, "not settled"));
    assert_eq!(line["error"], "settling failed: connection reset");
}

#[test]
fn the_filter_decides_by_target_and_level() {
    let log = || {
        tracing::debug!("debug");
        tracing::info!("info");
        tracing::info!(target: "aws_sdk", "noise");
    };
    assert_eq!(lines(LogFormat::Json, "info,aws_sdk=warn", log).len(), 1);
    assert_eq!(lines(LogFormat::Json, "debug", log).len(), 3);
    assert_eq!(lines(LogFormat::Json, "off", log).len(), 0);
    parse("", "info,pumphouse_pump=loud").unwrap_err();
}

/// What a library says stays beneath its level, until somebody asks for that library.
#[test]
fn a_talkative_library_is_quiet_until_it_is_named() {
    let said = |filter: &str| {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = layer(LogFormat::Json, false, false, move || writer.clone());
        let filter = parse("client=error", filter).unwrap();
        tracing::subscriber::with_default(subscriber(filter, layer), || {
            tracing::info!(target: "client_rust::route", "noise");
            tracing::error!(target: "client_rust", "broken");
            tracing::info!("ours");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines().count()
    };
    assert_eq!(said("info"), 2);
    assert_eq!(said("debug"), 2);
    assert_eq!(said("info,client=info"), 3);
    assert_eq!(said("client_rust::route=debug,info"), 3);
    assert_eq!(said("info,client=off"), 1);
    assert_eq!(said("error"), 1);
}

#[test]
fn auto_is_text_on_a_terminal_alone() {
    let starts = |terminal| {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = layer(LogFormat::Auto, terminal, false, move || writer.clone());
        let subscriber = subscriber(parse("", "info").unwrap(), layer);
        tracing::subscriber::with_default(subscriber, || tracing::info!("started"));
        kept.0.lock().unwrap().first().copied()
    };
    assert_eq!(starts(false), Some(b'{'));
    assert_ne!(starts(true), Some(b'{'));
}
