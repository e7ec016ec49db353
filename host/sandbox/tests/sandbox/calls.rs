//! What calls see of each other: nothing.

use std::time::{Duration, Instant};

use pumphouse_contract::ports::Handler;
use pumphouse_contract::{Count, FaultKind, HeaderValue, Message, Outcome, Timestamp};
use pumphouse_sandbox::{HandlerSpec, Limits, Sandbox, SandboxSettings};
use tokio::task::JoinSet;

use crate::common::{
    self, call, component, description, fault, guest, handler_with, invocation, within,
};

/// FR-22: a panic and a good message in turns, then a deadline and a good one.
#[tokio::test]
async fn fr_22_no_fault_fails_the_next_message() {
    let handler = common::load("turns", &guest("conformance"), within(50)).await.unwrap();
    for turn in 0..50 {
        let bad = if turn % 10 == 9 { r#"{"do":"loop"}"# } else { r#"{"do":"trap"}"# };
        let fault = fault(&handler, bad).await;
        assert!(!fault.detail.contains("cannot enter component instance"), "{fault:?}");
        assert_eq!(call(&handler, "good").await.result, Ok(Outcome::Ack), "turn {turn}");
    }
}

/// FR-23: pool 4, concurrency 64, 200 messages.
#[tokio::test(flavor = "multi_thread")]
async fn fr_23_more_work_than_slots_waits() {
    let sandbox = Sandbox::new(SandboxSettings { pool_slots: 4, ..common::settings() }).unwrap();
    let limits = Limits { concurrency: 64, ..Limits::default() };
    let spec = HandlerSpec { limits, ..common::spec("pool", &guest("conformance")) };
    let handler = sandbox.load(spec).await.unwrap();
    assert_eq!(handler.slots(), Some(4));
    let mut calls = JoinSet::new();
    let mut acks = 0;
    for n in 0..200 {
        if calls.len() == 64 {
            acks += usize::from(calls.join_next().await.unwrap().unwrap());
        }
        let version = handler.begin();
        let body = if n % 20 == 0 { r#"{"do":"sleep","ms":20}"# } else { "good" };
        calls.spawn(
            async move { version.call(invocation("m", body)).await.result == Ok(Outcome::Ack) },
        );
    }
    acks += calls.join_all().await.into_iter().filter(|ack| *ack).count();
    assert_eq!(acks, 200);
}

/// Calls beyond a handler's own places wait, too, and leave the pool's to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_has_places_of_its_own() {
    let sandbox = Sandbox::new(SandboxSettings { pool_slots: 4, ..common::settings() }).unwrap();
    let limits = Limits { concurrency: 1, ..within(5_000) };
    let narrow = HandlerSpec { limits, ..common::spec("narrow", &guest("conformance")) };
    let narrow = sandbox.load(narrow).await.unwrap();
    let other = sandbox.load(common::spec("other", &guest("bench"))).await.unwrap();
    assert_eq!(narrow.slots(), Some(1));
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let handler = narrow.clone();
        calls.spawn(async move { call(&handler, r#"{"do":"sleep","ms":400}"#).await.result });
    }
    assert_eq!(call(&other, "").await.result, Ok(Outcome::Ack));
    assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
    for result in calls.join_all().await {
        assert_eq!(result, Ok(Outcome::Ack));
    }
    assert!(began.elapsed() >= Duration::from_millis(1_200), "{:?}", began.elapsed());
}

/// The wait for an instance is part of the deadline: the lease counts on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_never_gets_an_instance_starves_at_its_deadline() {
    let limits = Limits { concurrency: 1, ..within(300) };
    let handler = common::load("full", &guest("hostile_loop"), limits).await.unwrap();
    let began = Instant::now();
    let (first, second) = tokio::join!(fault(&handler, ""), fault(&handler, ""));
    assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
    // On a busy machine the one that has the instance may starve, too, for want of a processor.
    let for_want_of_it = [&first, &second].into_iter().find(|fault| {
        fault.kind == FaultKind::Starved && fault.detail.contains("`limits.concurrency`")
    });
    assert!(for_want_of_it.is_some(), "{first:?}, {second:?}");
}

/// Dropping the future ends the call and frees its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_ends_and_frees_its_place() {
    let limits = Limits { concurrency: 1, ..within(60_000) };
    let handler = common::load("dropped", &guest("conformance"), limits).await.unwrap();
    for body in [r#"{"do":"loop"}"#, r#"{"do":"sleep","ms":60000}"#] {
        let cut = tokio::time::timeout(Duration::from_millis(50), call(&handler, body)).await;
        assert!(cut.is_err());
        let began = Instant::now();
        assert_eq!(call(&handler, "good").await.result, Ok(Outcome::Ack));
        assert!(began.elapsed() < Duration::from_secs(2), "{body}: {:?}", began.elapsed());
    }
}

/// Every field arrives, in the guest's types.
#[tokio::test]
async fn a_guest_sees_the_whole_message() {
    let log = common::log();
    let handler = common::load("report", &guest("conformance"), Limits::default()).await.unwrap();
    let headers = [
        ("type", HeaderValue::from("order")),
        ("raw", HeaderValue::Binary(vec![0xff].into())),
        ("n", HeaderValue::Number("7".into())),
    ];
    let message = Message {
        id: "whole-message".into(),
        headers: headers.into_iter().collect(),
        content_type: Some("text/plain".into()),
        ordering_key: Some("key".into()),
        published_at: Some(Timestamp(1_001)),
        body: r#"{"do":"report"}"#.into(),
    };
    let mut whole = invocation("", "");
    whole.message = message.into();
    whole.count = Count(2);
    assert_eq!(handler.begin().call(whole).await.result, Ok(Outcome::Ack));
    let lines = log.lines_with("whole-message");
    let report =
        lines.iter().find(|line| line.contains(r#""context":"report""#)).expect("a report");
    for part in [
        r#"\"count\":2"#,
        r#"\"source\":\"orders\""#,
        r#"[\"type\",\"order\"],[\"raw\",\"/w==\"],[\"n\",\"7\"]"#,
        r#"\"content-type\":\"text/plain\""#,
        r#"\"ordering-key\":\"key\""#,
        r#"\"published-at\":1001"#,
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
}

/// A fresh instance for every message: what one call writes, the next does not find.
#[tokio::test]
async fn nothing_is_remembered_from_one_message_to_the_next() {
    let text = handler_with(
        r#"(core module $guest
          (memory (export "memory") 1)
          (global $calls (mut i32) (i32.const 0))
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
          (func (export "handle") (param i32) (result i32)
            (if (i32.or (global.get $calls) (i32.load (i32.const 32768))) (then (unreachable)))
            (global.set $calls (i32.const 1))
            (i32.store (i32.const 32768) (i32.const 1))
            (i32.const 16))
          (func (export "post") (param i32)))"#,
    );
    let handler = common::load("memory", &component(&text), Limits::default()).await.unwrap();
    for _ in 0..20 {
        assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
    }
}

/// The clock of the caller's runtime is nothing to the guest's deadline.
#[tokio::test(start_paused = true)]
async fn a_paused_clock_around_the_call_changes_nothing() {
    let handler = common::load("paused", &guest("conformance"), within(5_000)).await.unwrap();
    let ended = call(&handler, r#"{"do":"reject","reason":"unacceptable","text":"no"}"#).await;
    assert_eq!(description(&ended), "no");
}

/// A sandbox that is shut down ends what runs in it, at once and by name.
#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_cuts_the_calls() {
    let sandbox = Sandbox::new(SandboxSettings { pool_slots: 4, ..common::settings() }).unwrap();
    let spec = HandlerSpec { limits: within(60_000), ..common::spec("cut", &guest("conformance")) };
    let handler = sandbox.load(spec).await.unwrap();
    let running = handler.clone();
    let call = tokio::spawn(async move { fault(&running, r#"{"do":"loop"}"#).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    sandbox.shutdown();
    let cut = tokio::time::timeout(Duration::from_secs(5), call).await.unwrap().unwrap();
    assert_eq!(cut.kind, FaultKind::Host);
    assert!(cut.detail.contains("shut down"), "{}", cut.detail);
    assert_eq!(fault(&handler, "good").await.kind, FaultKind::Host);
}
