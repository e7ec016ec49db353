//! What a guest says, in the operator's log.

use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{Grants, HandlerSpec, Limits};

use crate::common::{self, call, fault, guest, invocation};
use pumphouse_contract::ports::Handler;

/// The fields that an operator searches by, and the levels.
#[tokio::test]
async fn a_line_carries_who_said_it_about_which_message() {
    let log = common::log();
    let handler = common::load("greeter", &guest("greeter"), Limits::default()).await.unwrap();
    let ended = handler.begin().call(invocation("greet-1", "Ada")).await;
    assert_eq!(ended.result, Ok(Outcome::Ack));
    let lines = log.lines_with("greet-1");
    let line = lines.first().expect("a line");
    for part in [
        r#""message":"guest log""#,
        r#""target":"pumphouse::guest""#,
        r#""handler":"test/greeter""#,
        r#""text":"Hi, Ada!""#,
        r#""level":"info""#,
        handler.begin().digest(),
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[tokio::test]
async fn no_line_can_be_forged() {
    let log = common::log();
    let handler = common::load("forge", &guest("hostile_forge"), Limits::default()).await.unwrap();
    let ended = handler.begin().call(invocation("forge-1", "")).await;
    assert!(matches!(ended.result, Ok(Outcome::Reject(_))), "{ended:?}");
    let lines = log.lines_with("FORGED");
    assert!(lines.len() >= 12, "{}", lines.len());
    for line in lines {
        assert!(line.starts_with('{') && line.contains("guest log"), "{line}");
        let active = |c: char| c.is_control() || "\u{85}\u{2028}\u{202e}".contains(c);
        assert!(!line.contains(active), "{line}");
        // What JSON itself escapes was escaped before: no reader of the fields sees a control character either.
        assert!(!line.contains(r"\u001b") && !line.contains(r"\u0000"), "{line}");
    }
}

#[tokio::test]
async fn a_flood_ends_at_the_budget() {
    let log = common::log();
    let limits = Limits { log_bytes: 2_000, ..Limits::default() };
    let handler = common::load("flood", &guest("hostile_flood"), limits).await.unwrap();
    let fault = fault(&handler, "").await;
    assert_eq!(fault.kind, FaultKind::LogBudget);
    assert!(fault.detail.contains("2000 bytes") && fault.detail.contains("`limits.log`"));
    assert_eq!(fault.last_logs.len(), 20);
    let lines = log.lines_with("test/flood").len();
    assert!((80..=120).contains(&lines), "{lines} lines");
    let limits = Limits { log_lines: 7, ..Limits::default() };
    let handler = common::load("lines", &guest("hostile_flood"), limits).await.unwrap();
    assert_eq!(common::fault(&handler, "").await.kind, FaultKind::LogBudget);
    assert_eq!(log.lines_with("test/lines").iter().filter(|l| l.contains("guest log")).count(), 7);
}

/// Printing needs no grant: it is in the fault, and in the log only where logging is granted.
#[tokio::test]
async fn what_is_printed_is_for_the_fault() {
    let log = common::log();
    let quiet = HandlerSpec {
        grants: Grants::default(),
        ..common::spec("quiet-panic", &guest("hostile_panic"))
    };
    let quiet = common::shared().load(quiet).await.unwrap();
    let loud =
        common::load("loud-panic", &guest("hostile_panic"), Limits::default()).await.unwrap();
    for handler in [&quiet, &loud] {
        let fault = call(handler, "").await.result.unwrap_err();
        assert!(fault.last_logs.iter().any(|line| line.contains("no customer")), "{fault:?}");
    }
    let shown = |name| log.lines_with(name).iter().any(|line| line.contains("no customer"));
    assert!(shown("test/loud-panic"));
    assert!(!shown("test/quiet-panic"));
}

/// A line belongs to the span in which the call was made.
#[tokio::test]
async fn the_callers_span_is_around_the_guests_lines() {
    use tracing::Instrument;
    let log = common::log();
    let handler = common::load("spans", &guest("greeter"), Limits::default()).await.unwrap();
    let span = tracing::info_span!("process", trace = "the-callers-own");
    let version = handler.begin();
    let call = async { version.call(invocation("span-1", "Ada")).await };
    assert_eq!(call.instrument(span).await.result, Ok(Outcome::Ack));
    assert!(log.lines_with("span-1").iter().any(|line| line.contains("the-callers-own")));
}
