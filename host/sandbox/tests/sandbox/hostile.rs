//! Each way to misbehave has a fault of its own, and the neighbours go on.

use std::path::Path;
use std::time::{Duration, Instant};

use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{HandlerSpec, Limits};

use crate::common::{self, call, component, description, fault, guest, handler_with, within};

const MIB: u64 = 1 << 20;

async fn fault_of(name: &str, limits: Limits) -> pumphouse_contract::Fault {
    let handler = common::load(name, &guest(name), limits).await.unwrap();
    fault(&handler, "").await
}

async fn fault_of_text(name: &str, limits: Limits) -> pumphouse_contract::Fault {
    let text = handler_with(&common::text_of(&format!("handlers/{name}.wat")));
    let handler = common::load(name, &component(&text), limits).await.unwrap();
    fault(&handler, "").await
}

/// FR-19: guest code, a sleep and a pollable; then what the component does before, around and after the call.
#[tokio::test]
async fn fr_19_the_deadline_covers_host_calls() {
    let sandbox = common::small();
    for name in ["hostile_loop", "hostile_sleep", "hostile_poll"] {
        let spec = HandlerSpec { limits: within(300), ..common::spec(name, &guest(name)) };
        let handler = sandbox.load(spec).await.unwrap();
        let began = Instant::now();
        let fault = fault(&handler, "").await;
        assert_eq!(fault.kind, FaultKind::Deadline, "{name}: {fault:?}");
        assert!(fault.detail.contains("300ms") && fault.detail.contains("`limits.deadline`"));
        let took = began.elapsed();
        assert!((300..1_000).contains(&took.as_millis()), "{name} ended after {took:?}");
    }
    for name in ["start-loop", "realloc-loop", "post-loop"] {
        let text = handler_with(&common::text_of(&format!("handlers/{name}.wat")));
        let path = component(&text);
        let spec = HandlerSpec { limits: within(300), ..common::spec(name, &path) };
        let fault = fault(&sandbox.load(spec).await.unwrap(), "").await;
        assert_eq!(fault.kind, FaultKind::Deadline, "{name}: {fault:?}");
    }
}

/// A loop's backtrace says where it was when it was interrupted.
#[tokio::test]
async fn an_endless_loop_says_where() {
    let fault = fault_of("hostile_loop", within(100)).await;
    let at = fault.backtrace.first().expect("a frame");
    assert!(at.contains("handle"), "{fault:?}");
}

#[tokio::test]
async fn a_panic_tells_its_message_and_its_functions_innermost_first() {
    let handler = common::load("panic", &guest("hostile_panic"), Limits::default()).await.unwrap();
    let fault = fault(&handler, "abc").await;
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(fault.detail.contains("order of 3 bytes has no customer"), "{}", fault.detail);
    let place = |name| fault.backtrace.iter().position(|frame| frame.contains(name));
    let (inner, outer) = (place("read_customer_record"), place("look_up_customer"));
    assert!(inner.is_some() && inner < outer, "{:?}", fault.backtrace);
    assert!(fault.last_logs.iter().any(|line| line.contains("panicked at")), "{fault:?}");
}

#[tokio::test]
async fn an_exit_is_no_answer() {
    let fault = fault_of("hostile_exit", Limits::default()).await;
    assert_eq!(fault.kind, FaultKind::Exit);
    assert!(fault.detail.contains("exit status 0"), "{}", fault.detail);
}

/// FR-21.
#[tokio::test]
async fn fr_21_memory_and_tables_end_at_their_limits() {
    let limits = Limits { memory: 16 * MIB, table_elements: 15_000, ..Limits::default() };
    let handler = common::load("memory", &guest("hostile_memory"), limits).await.unwrap();
    let ended = call(&handler, "").await;
    let fault = ended.result.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Memory, "{fault:?}");
    assert!(fault.detail.contains("16MiB") && fault.detail.contains("`limits.memory`"));
    assert!(ended.usage.memory_peak <= 16 * MIB && ended.usage.memory_peak > 8 * MIB);
    let fault = fault_of_text("table", limits).await;
    assert_eq!(fault.kind, FaultKind::Table, "{fault:?}");
    assert!(fault.detail.contains("15000"), "{}", fault.detail);
    let fault = fault_of_text("start-memory", limits).await;
    assert_eq!(fault.kind, FaultKind::Memory, "{fault:?}");
    let fault = fault_of("hostile_pollables", within(5_000)).await;
    assert_eq!(fault.kind, FaultKind::Table, "{fault:?}");
}

/// FR-21: eight growers at once, in the memory of the whole process.
#[tokio::test(flavor = "multi_thread")]
async fn fr_21_growers_together_stay_within_their_limits() {
    let limits = Limits { memory: 32 * MIB, ..Limits::default() };
    let handler = common::load("growers", &guest("hostile_memory"), limits).await.unwrap();
    let before = resident();
    let mut growers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let handler = handler.clone();
        growers.spawn(async move { fault(&handler, "").await.kind });
    }
    let mut most = 0;
    while !growers.is_empty() {
        tokio::select! {
            kind = growers.join_next() => assert_eq!(kind.unwrap().unwrap(), FaultKind::Memory),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        most = most.max(resident().saturating_sub(before));
    }
    assert!(most < 8 * 32 * MIB + 128 * MIB, "the process grew by {} MiB", most / MIB);
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn both_stacks_have_an_end() {
    let fault = fault_of_text("recursion", Limits::default()).await;
    assert_eq!(fault.kind, FaultKind::Stack, "{fault:?}");
    assert!(fault.detail.contains("512KiB"), "{}", fault.detail);
    let fault = fault_of("hostile_recursion", Limits::default()).await;
    assert_eq!(fault.kind, FaultKind::Stack, "{fault:?}");
    assert!(fault.detail.contains("dive"), "{}", fault.detail);
}

#[tokio::test]
async fn an_answer_has_a_largest_size() {
    let limits = Limits { result_bytes: MIB, ..Limits::default() };
    let handler = common::load("description", &guest("hostile_description"), limits).await.unwrap();
    for size in ["1048577", "16777216"] {
        let fault = fault(&handler, size).await;
        assert_eq!(fault.kind, FaultKind::ResultSize, "{fault:?}");
        assert!(fault.detail.contains("1MiB") && fault.detail.contains("`limits.result`"));
    }
    assert_eq!(description(&call(&handler, "1000000").await).len(), 1_000_000);
    let fault = fault_of_text("description-huge", limits).await;
    assert_eq!(fault.kind, FaultKind::ResultSize, "{fault:?}");
}

#[tokio::test]
async fn an_answer_that_lies_is_invalid() {
    for name in [
        "description-not-utf8",
        "description-out-of-bounds",
        "outcome-misaligned",
        "outcome-out-of-bounds",
        "outcome-unknown",
        "realloc-out-of-bounds",
        "reason-unknown",
    ] {
        let fault = fault_of_text(name, Limits::default()).await;
        assert_eq!(fault.kind, FaultKind::InvalidResult, "{name}: {fault:?}");
    }
    let fault = fault_of("hostile_random", Limits::default()).await;
    assert_eq!(fault.kind, FaultKind::ResultSize, "{fault:?}");
}

/// An answer before a trap is none: the guest did not return.
#[tokio::test]
async fn a_trap_after_the_answer_is_a_trap() {
    let fault = fault_of_text("post-trap", Limits::default()).await;
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
}

#[tokio::test]
async fn the_longest_delay_is_taken_as_it_is() {
    let text = handler_with(&common::text_of("handlers/defer-longest.wat"));
    let handler = common::load("defer", &component(&text), Limits::default()).await.unwrap();
    let outcome = call(&handler, "").await.result.unwrap();
    assert_eq!(outcome, Outcome::Defer(Some(Duration::from_millis(u64::MAX))));
}

/// Printing needs no grant and ends no call; cheap host calls without number end at the deadline at the latest.
#[tokio::test]
async fn chatter_is_bounded() {
    for name in ["hostile_stdio_flood", "hostile_clocks"] {
        let handler = common::load(name, &guest(name), within(2_000)).await.unwrap();
        let began = Instant::now();
        let ended = call(&handler, "").await;
        assert!(began.elapsed() < Duration::from_millis(2_500), "{:?}", began.elapsed());
        if let Err(fault) = ended.result {
            assert_eq!(fault.kind, FaultKind::Deadline, "{name}: {fault:?}");
            assert!(fault.last_logs.iter().map(String::len).sum::<usize>() <= 4096);
        }
    }
}

/// FR-24: this process has an environment full of things, a working folder, files and a network.
#[tokio::test]
async fn fr_24_a_guest_gets_nothing_that_it_was_not_given() {
    let secrets: Vec<String> = std::env::vars().map(|(_, value)| value).collect();
    assert!(secrets.iter().any(|secret| secret == "pumphouse-sandbox"), "cargo sets the name");
    let handler = common::load("probe", &guest("hostile_probe"), Limits::default()).await.unwrap();
    let ended = call(&handler, "").await;
    let found = description(&ended);
    assert!(found.lines().count() >= 12, "{found}");
    for line in found.lines() {
        assert!(line.ends_with("=0") || line.ends_with("=denied"), "{line}");
    }
    for secret in secrets.iter().filter(|secret| secret.len() > 7) {
        assert!(!found.contains(secret.as_str()), "{secret:?} in {found}");
    }
}

/// FR-20, in small: endless guests beside an honest one, more of them than processors.
#[tokio::test(flavor = "multi_thread")]
async fn fr_20_a_neighbour_goes_on_beside_endless_guests() {
    let sandbox = common::small();
    let looping = HandlerSpec {
        limits: Limits { concurrency: 16, ..within(3_000) },
        ..common::spec("loops", &guest("hostile_loop"))
    };
    let looping = sandbox.load(looping).await.unwrap();
    let honest =
        HandlerSpec { name: "neighbour/honest".into(), ..common::spec("honest", &guest("bench")) };
    let honest = sandbox.load(honest).await.unwrap();
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let handler = looping.clone();
        loops.spawn(async move { fault(&handler, "").await.kind });
    }
    let began = Instant::now();
    for _ in 0..50 {
        assert_eq!(call(&honest, "").await.result, Ok(Outcome::Ack));
    }
    assert!(began.elapsed() < Duration::from_millis(2_900), "{:?}", began.elapsed());
    while let Some(kind) = loops.join_next().await {
        assert!(matches!(kind.unwrap(), FaultKind::Deadline | FaultKind::Starved));
    }
}

/// What every hostile guest leaves behind: a sandbox in which the next call works.
#[tokio::test]
async fn an_honest_frame_works() {
    let text = handler_with(&common::text_of("handlers/ack.wat"));
    let path: &Path = &component(&text);
    let handler = common::load("ack", path, Limits::default()).await.unwrap();
    let ended = call(&handler, "body").await;
    assert_eq!(ended.result, Ok(Outcome::Ack));
    assert_eq!(ended.usage.memory_peak, 64 * 1024);
    assert!(ended.usage.cpu > Duration::ZERO && ended.usage.instantiation > Duration::ZERO);
}
