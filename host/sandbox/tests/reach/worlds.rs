//! Components that were built for other hosts.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, FaultKind, HeaderValue, Message, Outcome, Reason, Timestamp};
use pumphouse_sandbox::{Grants, HandlerSpec, Limits, LoadedHandler};

use crate::common::{self, call, component, fault, guest};

/// With nothing granted but a log, in which a guest's error stands.
async fn load(name: &str, path: &Path) -> Arc<LoadedHandler> {
    let grants = Grants { logging: true, ..Grants::default() };
    let spec =
        HandlerSpec { grants, watch: false, ..HandlerSpec::new(format!("test/{name}"), path) };
    common::shared().load(spec).await.unwrap()
}

/// The third delivery of a message with everything.
fn third(body: &'static [u8]) -> Invocation {
    let message = Message {
        id: "m-7".into(),
        headers: [
            ("type", HeaderValue::from("order")),
            ("size", HeaderValue::Number("12".into())),
            ("raw", HeaderValue::Binary(Bytes::from_static(b"\xff\xfe"))),
        ]
        .into_iter()
        .collect(),
        content_type: Some("text/plain".into()),
        ordering_key: Some("customer-3".into()),
        published_at: Some(Timestamp(1_700_000_000_000)),
        body: Bytes::from_static(body),
    };
    Invocation {
        message: Arc::new(message),
        source: "orders".into(),
        subscription: "orders".into(),
        count: Count(2),
    }
}

#[tokio::test]
async fn a_handler_of_wasi_messaging_runs_unchanged() {
    let log = common::log();
    let handler = load("messaging", &guest("world_messaging")).await;
    assert_eq!(call(&handler, "ack").await.result, Ok(Outcome::Ack));
    for (body, text) in [
        ("timeout", "error: timeout"),
        ("connection", "error: connection: the database is away"),
        ("denied", "error: permission denied: no right"),
        ("connect", "error: permission denied: this host gives no connection"),
    ] {
        assert_eq!(call(&handler, body).await.result, Ok(Outcome::Defer(None)), "{body}");
        let lines = log.lines_with(text);
        assert!(lines.iter().any(|line| line.contains("test/messaging")), "{text}: {lines:?}");
    }
    assert_eq!(fault(&handler, "panic").await.kind, FaultKind::Trap);
}

#[tokio::test]
async fn a_handler_of_wasi_messaging_is_given_the_whole_message() {
    let log = common::log();
    let handler = load("messaging-all", &guest("world_messaging")).await;
    let ended = handler.begin().call(third(b"show")).await;
    assert_eq!(ended.result, Ok(Outcome::Defer(None)));
    let lines = log.lines_with("test/messaging-all");
    let shown = lines.iter().find(|line| line.contains("metadata")).unwrap().replace('\\', "");
    for part in [
        r#"topic Some("orders")"#,
        r#"type Some("text/plain")"#,
        r#"("type", "order"), ("size", "12"), ("raw", "//4=")"#,
        r#"("pumphouse-id", "m-7"), ("pumphouse-delivery-count", "2")"#,
        r#"("pumphouse-ordering-key", "customer-3")"#,
        r#"("pumphouse-published-at", "1700000000000")"#,
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// FR-21: messages that a guest makes are the host's memory, and bounded.
#[tokio::test]
async fn fr_21_a_guest_holds_no_more_messages_than_it_may() {
    let handler = load("messaging-hoard", &guest("world_messaging")).await;
    let hoard = fault(&handler, "hoard").await;
    assert_eq!(hoard.kind, FaultKind::Memory, "{hoard:?}");
    assert!(hoard.detail.contains("16MiB"), "{hoard:?}");
    assert_eq!(call(&handler, "edit").await.result, Ok(Outcome::Ack));
}

#[tokio::test]
async fn a_handler_for_spins_sqs_trigger_runs_unchanged() {
    let log = common::log();
    let handler = load("spin", &guest("world_spin_sqs")).await;
    assert_eq!(call(&handler, "delete").await.result, Ok(Outcome::Ack));
    assert_eq!(call(&handler, "leave").await.result, Ok(Outcome::Defer(None)));
    assert_eq!(fault(&handler, "panic").await.kind, FaultKind::Trap);
    let ended = handler.begin().call(third(b"show")).await;
    assert_eq!(ended.result, Ok(Outcome::Defer(None)));
    let lines = log.lines_with("test/spin");
    let shown = lines.iter().find(|line| line.contains("m-7")).unwrap();
    for part in [
        "ApproximateReceiveCount=3 SentTimestamp=1700000000000 MessageGroupId=customer-3",
        "type=order size=12 raw=[255, 254]",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// The interface has no bytes: such a message would look empty, and be deleted.
#[tokio::test]
async fn a_body_that_is_no_text_is_not_given_to_spins_handler() {
    let handler = load("spin-bytes", &guest("world_spin_sqs")).await;
    let ended = handler.begin().call(third(b"\xff\xfe")).await;
    let Ok(Outcome::Reject(rejection)) = ended.result else { panic!("{ended:?}") };
    assert_eq!(rejection.reason, Reason::Unacceptable);
    assert!(rejection.description.contains("UTF-8"), "{rejection:?}");
}

async fn refusal(text: &str) -> String {
    let refused = common::load("world", &component(text), Limits::default()).await;
    refused.unwrap_err().to_string()
}

/// FR-28: the shape of each world is looked at when the component is deployed.
#[tokio::test]
async fn fr_28_another_shape_of_a_world_is_refused() {
    let spin = r#"(component
        (core module $m (func (export "f") (param i32) (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $f (param "message" u32) (result u32) (canon lift (core func $i "f")))
        (export "handle-queue-message" (func $f)))"#;
    let refused = refusal(spin).await;
    assert!(refused.contains("another shape") && refused.contains("fermyon:spin-sqs"), "{refused}");
    let messaging = r#"(component
        (core module $m (func (export "f") (param i32) (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $f (param "message" u32) (result u32) (canon lift (core func $i "f")))
        (instance $e (export "handle" (func $f)))
        (export "wasi:messaging/incoming-handler@0.2.0-draft" (instance $e)))"#;
    let refused = refusal(messaging).await;
    assert!(refused.contains("another shape") && refused.contains("wasi:messaging"), "{refused}");
    let empty = messaging.replace(r#"(export "handle" (func $f))"#, r#"(export "h" (func $f))"#);
    let refused = refusal(&empty).await;
    assert!(refused.contains("has no function `handle`"), "{refused}");
    let other = messaging.replace("0.2.0-draft", "0.3.0");
    let refused = refusal(&other).await;
    assert!(refused.contains("0.3.0") && refused.contains("speaks"), "{refused}");
}

/// FR-28: two worlds in one component are one too many.
#[tokio::test]
async fn fr_28_a_component_of_two_worlds_is_refused() {
    let two = r#"(component
        (core module $m (func (export "f") (param i32) (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $f (param "message" u32) (result u32) (canon lift (core func $i "f")))
        (instance $e (export "handle" (func $f)))
        (export "wasi:messaging/incoming-handler@0.2.0-draft" (instance $e))
        (export "handle-queue-message" (func $f)))"#;
    let refused = refusal(two).await;
    assert!(
        refused.contains(
            "it exports wasi:messaging/incoming-handler@0.2.0-draft and handle-queue-message"
        ),
        "{refused}"
    );
}

/// FR-28: what sends is refused when it is deployed, not at its first message.
#[tokio::test]
async fn fr_28_sending_is_reserved() {
    let sends = r#"(component
        (import "wasi:messaging/producer@0.2.0-draft" (instance (export "send" (func))))
        (core module $m (func (export "f") (param i32) (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $f (param "message" u32) (result u32) (canon lift (core func $i "f")))
        (instance $e (export "handle" (func $f)))
        (export "wasi:messaging/incoming-handler@0.2.0-draft" (instance $e)))"#;
    let refused = refusal(sends).await;
    assert!(refused.contains("`grants.publish` is reserved for it"), "{refused}");
}
