//! Instances that handle more than one message: what is left from one to the next, and when they end.

use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::ports::{Handler, Version};
use pumphouse_contract::{Count, Fault, FaultKind, Outcome};
use pumphouse_sandbox::{
    DeployError, HandlerSpec, Instances, Limits, LoadedHandler, Runtime, Sandbox, SandboxSettings,
};
use tempfile::TempPath;
use tokio::task::JoinSet;

use crate::common::{
    self, call, component, eventually, fault, guest, handler_with, invocation, within,
};

/// Defers for as many milliseconds as messages reached this instance. Its second delivery loops, its third traps, its
/// fourth takes memory for good.
fn counter(by: u32) -> String {
    let guest = r#"(core module $guest
      (memory (export "memory") 1)
      (global $calls (mut i32) (i32.const 0))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "handle") (param i32) (result i32)
        (local $count i32)
        (local.set $count (i32.load offset=16 (local.get 0)))
        (if (i32.eq (local.get $count) (i32.const 1)) (then (loop (br 0))))
        (if (i32.eq (local.get $count) (i32.const 2)) (then (unreachable)))
        (if (i32.eq (local.get $count) (i32.const 3))
          (then (if (i32.lt_s (memory.grow (i32.const 16)) (i32.const 0)) (then (unreachable)))))
        (global.set $calls (i32.add (global.get $calls) (i32.const BY)))
        (i32.store8 (i32.const 32) (i32.const 1))
        (i32.store8 (i32.const 40) (i32.const 1))
        (i64.store (i32.const 48) (i64.extend_i32_u (global.get $calls)))
        (i32.const 32))
      (func (export "post") (param i32)))"#;
    handler_with(&guest.replace("BY", &by.to_string()))
}

fn counting() -> TempPath {
    component(&counter(1))
}

const LOOPS: u32 = 1;
const TRAPS: u32 = 2;
const GROWS: u32 = 3;

fn reused(name: &str, component: &std::path::Path, instances: Instances) -> HandlerSpec {
    HandlerSpec { instances: Some(instances), ..common::spec(name, component) }
}

fn so_many(messages: u32) -> Instances {
    Instances::Reused { messages, age: Duration::from_secs(600), idle: 8 }
}

/// The number that the counter answers.
async fn count(handler: &LoadedHandler) -> u128 {
    match call(handler, "").await.result {
        Ok(Outcome::Defer(Some(delay))) => delay.as_millis(),
        other => panic!("no count: {other:?}"),
    }
}

/// A delivery that is not the first.
async fn delivery(handler: &LoadedHandler, before: u32) -> Result<Outcome, Fault> {
    let mut invocation = invocation("m-2", "");
    invocation.count = Count(before);
    handler.begin().call(invocation).await.result
}

/// FR-22: a panic and a good message in turns, by instances that are kept.
#[tokio::test]
async fn fr_22_with_instances_that_are_kept_no_fault_fails_the_next_message() {
    let spec = HandlerSpec {
        limits: within(200),
        ..reused("kept-turns", &guest("conformance"), Instances::REUSED)
    };
    let handler = common::shared().load(spec).await.unwrap();
    for turn in 0..50 {
        let bad = if turn % 10 == 9 { r#"{"do":"loop"}"# } else { r#"{"do":"trap"}"# };
        let fault = fault(&handler, bad).await;
        assert!(!fault.detail.contains("cannot enter component instance"), "{fault:?}");
        for _ in 0..2 {
            assert_eq!(call(&handler, "good").await.result, Ok(Outcome::Ack), "turn {turn}");
        }
    }
}

#[tokio::test]
async fn an_instance_that_is_kept_serves_one_handler_of_one_tenant() {
    let component = counting();
    let mut spec = reused("kept-one", &component, Instances::REUSED);
    let one = common::shared().load(spec.clone()).await.unwrap();
    spec.name = "test/kept-two".to_owned();
    let sibling = common::shared().load(spec.clone()).await.unwrap();
    spec.name = "other/kept-one".to_owned();
    let other_tenant = common::shared().load(spec).await.unwrap();
    for n in 1..=5 {
        assert_eq!(count(&one).await, n);
        assert_eq!(count(&sibling).await, n);
        assert_eq!(count(&other_tenant).await, n);
    }
}

#[tokio::test]
async fn an_instance_that_is_kept_ends_after_its_messages() {
    let component = counting();
    let spec = reused("kept-three", &component, so_many(3));
    let handler = common::shared().load(spec).await.unwrap();
    for n in [1, 2, 3, 1, 2, 3, 1] {
        assert_eq!(count(&handler).await, n);
    }
}

#[tokio::test]
async fn an_instance_that_is_kept_ends_with_its_time() {
    let age = Duration::from_millis(1_500);
    let policy = Instances::Reused { messages: 1_000, age, idle: 8 };
    let handler = common::shared().load(reused("kept-while", &counting(), policy)).await.unwrap();
    assert_eq!((count(&handler).await, count(&handler).await), (1, 2));
    tokio::time::sleep(age).await;
    assert_eq!(count(&handler).await, 1);
}

#[tokio::test]
async fn without_room_to_rest_every_message_has_a_fresh_instance() {
    for policy in [
        Instances::Fresh,
        so_many(1),
        Instances::Reused { messages: 9, age: Duration::ZERO, idle: 8 },
        Instances::Reused { messages: 9, age: Duration::from_secs(600), idle: 0 },
    ] {
        let handler =
            common::shared().load(reused("never-kept", &counting(), policy)).await.unwrap();
        for _ in 0..3 {
            assert_eq!(count(&handler).await, 1, "{policy:?}");
        }
    }
}

/// FR-22: neither a trap nor a deadline nor a dropped call leaves an instance behind.
#[tokio::test(flavor = "multi_thread")]
async fn fr_22_an_instance_that_gave_no_answer_is_never_entered_again() {
    let component = counting();
    let spec =
        HandlerSpec { limits: within(500), ..reused("kept-faults", &component, Instances::REUSED) };
    let handler = common::shared().load(spec).await.unwrap();
    assert_eq!((count(&handler).await, count(&handler).await), (1, 2));
    assert_eq!(delivery(&handler, TRAPS).await.unwrap_err().kind, FaultKind::Trap);
    assert_eq!((count(&handler).await, count(&handler).await), (1, 2));
    assert_eq!(delivery(&handler, LOOPS).await.unwrap_err().kind, FaultKind::Deadline);
    assert_eq!((count(&handler).await, count(&handler).await), (1, 2));
    let dropped = tokio::time::timeout(Duration::from_millis(30), delivery(&handler, LOOPS)).await;
    assert!(dropped.is_err());
    assert_eq!(count(&handler).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_ends_the_instances_of_the_version_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counter.wasm");
    let write = |by| std::fs::write(&path, wat::parse_str(counter(by)).unwrap()).unwrap();
    write(1);
    let spec = HandlerSpec { watch: true, ..reused("kept-swap", &path, Instances::REUSED) };
    let handler = common::shared().load(spec).await.unwrap();
    assert_eq!((count(&handler).await, count(&handler).await), (1, 2));
    for (by, first) in [(10, 10), (1, 1)] {
        let before = handler.current().digest().to_owned();
        write(by);
        eventually("the swap", || handler.current().digest() != before).await;
        assert_eq!((count(&handler).await, count(&handler).await), (first, 2 * first));
    }
}

/// Time and log are each call's own, and so are the last lines of a fault.
#[tokio::test]
async fn what_is_limited_for_a_call_begins_anew_with_each() {
    let limits = Limits { log_lines: 3, ..within(2_000) };
    let spec =
        HandlerSpec { limits, ..reused("kept-limits", &guest("conformance"), Instances::REUSED) };
    let handler = common::shared().load(spec).await.unwrap();
    for _ in 0..6 {
        let body = r#"{"do":"sleep","ms":500,"then":{"do":"log","text":"of an earlier call"}}"#;
        assert_eq!(call(&handler, body).await.result, Ok(Outcome::Ack));
    }
    let fault = fault(&handler, r#"{"do":"trap","text":"now"}"#).await;
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(!fault.last_logs.iter().any(|line| line.contains("earlier")), "{fault:?}");
}

/// FR-21: what an instance takes it keeps, so the limit is one over its life.
#[tokio::test]
async fn fr_21_the_memory_limit_holds_over_an_instances_life() {
    let (component, limits) = (counting(), Limits { memory: 4 << 20, ..within(5_000) });
    let spec = HandlerSpec { limits, ..reused("kept-memory", &component, Instances::REUSED) };
    let handler = common::shared().load(spec).await.unwrap();
    for round in 0..3 {
        for n in 0..3 {
            let grown = delivery(&handler, GROWS).await;
            assert!(grown.is_ok(), "round {round}, growth {n}: {grown:?}");
        }
        let fault = delivery(&handler, GROWS).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Memory, "{fault:?}");
    }
}

/// FR-23: instances that rest hold slots, and give them up.
#[tokio::test(flavor = "multi_thread")]
async fn fr_23_instances_that_rest_give_way_to_calls() {
    let settings = SandboxSettings { pool_slots: 2, ..common::settings() };
    let sandbox = Sandbox::new(settings).unwrap();
    let component = counting();
    let mut handlers = Vec::new();
    for n in 0..6 {
        let spec = HandlerSpec {
            limits: within(20_000),
            ..reused(&format!("resting-{n}"), &component, Instances::REUSED)
        };
        handlers.push(sandbox.load(spec).await.unwrap());
    }
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        for handler in handlers.iter().map(Arc::clone) {
            calls.spawn(async move { call(&handler, "").await.result.is_ok() });
        }
    }
    assert!(calls.join_all().await.into_iter().all(|answered| answered));
}

/// Many calls of one handler: each instance is in one call at a time.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_have_an_instance_each() {
    let handler = common::shared()
        .load(reused("kept-many", &guest("conformance"), Instances::REUSED))
        .await
        .unwrap();
    let mut calls = JoinSet::new();
    for n in 0..200 {
        let handler = handler.clone();
        let body = format!(r#"{{"do":"sleep","ms":{}}}"#, n % 7);
        calls.spawn(async move { call(&handler, &body).await.result == Ok(Outcome::Ack) });
    }
    assert!(calls.join_all().await.into_iter().all(|acked| acked));
}

#[tokio::test]
async fn a_large_component_is_heavy_and_its_instances_are_kept() {
    let large = || {
        let data = format!(r#"(data (i32.const 65536) "{}")"#, "x".repeat((1 << 20) + 1));
        let text = counter(1)
            .replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 18)"#);
        component(&text.replace("(global $calls", &format!("{data} (global $calls")))
    };
    for (runtime, kept) in [(Runtime::Auto, true), (Runtime::Heavy, true), (Runtime::Lean, false)] {
        let component = large();
        let spec = HandlerSpec { runtime, ..common::spec("large", &component) };
        let handler = common::shared().load(spec).await.unwrap();
        assert_eq!(count(&handler).await, 1, "{runtime:?}");
        assert_eq!(count(&handler).await == 2, kept, "{runtime:?}");
    }
    let small = common::shared().load(common::spec("small", &counting())).await.unwrap();
    assert_eq!((count(&small).await, count(&small).await), (1, 1));
}

/// FR-23: the second pool is reserved for the first handler that needs it.
#[tokio::test]
async fn fr_23_a_heavy_pool_that_can_not_be_reserved_is_a_refused_deploy_that_says_what_to_lower() {
    let settings = SandboxSettings { pool_slots: 2, heavy_slots: 60_000, ..common::settings() };
    let sandbox = Sandbox::new(settings).unwrap();
    let component = counting();
    let heavy = HandlerSpec { runtime: Runtime::Heavy, ..common::spec("no-room", &component) };
    let error = sandbox.load(heavy).await.unwrap_err();
    assert!(matches!(error, DeployError::NoPool { .. }), "{error}");
    assert!(error.to_string().contains("lower `host.heavy_slots`"), "{error}");
    let lean = sandbox.load(common::spec("room", &component)).await.unwrap();
    assert_eq!(count(&lean).await, 1);
}
