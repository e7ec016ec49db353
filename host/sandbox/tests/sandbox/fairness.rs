//! FR-20: what one tenant computes, others don't wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pumphouse_contract::ports::Handler;
use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{Limits, LoadedHandler, TenantLimits};
use tokio::task::JoinSet;

use crate::common::{self, call, fault, invocation, within};
use crate::tenancy::{load, tenant, two_threads};

/// Turns of the busy guest that take about a millisecond where nobody else computes.
const MILLISECOND: &str = "400000";

/// Calls that are made again as soon as they end, until they are dropped.
fn keep_calling(handler: &Arc<LoadedHandler>, calls: usize, body: &'static str) -> JoinSet<()> {
    let mut running = JoinSet::new();
    for _ in 0..calls {
        let handler = handler.clone();
        running.spawn(async move {
            loop {
                call(&handler, body).await;
            }
        });
    }
    running
}

/// FR-20: 16 endless calls of one tenant; the other one's hundred messages are done in ten seconds, and the first
/// one's are cut at their deadline.
#[tokio::test(flavor = "multi_thread")]
async fn fr_20_a_busy_guest_does_not_starve_anyone_else() {
    let sandbox = two_threads(128);
    let endless = load(&sandbox, "x/loop", "hostile_loop", within(60_000)).await;
    let busy = load(&sandbox, "y/busy", "hostile_busy", Limits::default()).await;
    let _running = keep_calling(&endless, 16, "");
    let runs = || tenant(&sandbox, "x").computing == 4 && tenant(&sandbox, "x").waiting == 12;
    common::eventually("four compute and twelve wait", runs).await;
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(call(&busy, MILLISECOND).await.result, Ok(Outcome::Ack));
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let cut = load(&sandbox, "x/cut", "hostile_loop", within(1_000)).await;
    let began = Instant::now();
    let fault = fault(&cut, "").await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(matches!(fault.kind, FaultKind::Deadline | FaultKind::Starved), "{fault:?}");
    // Timers of the runtime that transports run on are on time all the while.
    let began = Instant::now();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// FR-20: three tenants that could fill all places for a minute make room for a fourth one within a few ticks.
#[tokio::test(flavor = "multi_thread")]
async fn fr_20_endless_guests_can_not_hold_all_places_until_their_deadlines() {
    let sandbox = two_threads(128);
    let mut running = Vec::new();
    for name in ["a/loop", "b/loop", "c/loop"] {
        let endless = load(&sandbox, name, "hostile_loop", within(60_000)).await;
        running.push(keep_calling(&endless, 8, ""));
    }
    let all = || sandbox.tenants().iter().map(|tenant| tenant.computing).sum::<usize>() == 8;
    common::eventually("all places are taken", all).await;
    let busy = load(&sandbox, "y/busy", "hostile_busy", Limits::default()).await;
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(call(&busy, MILLISECOND).await.result, Ok(Outcome::Ack));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Within a tenant that computes without end, its own short calls have their turns, too.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_tenant_take_turns() {
    let sandbox = two_threads(128);
    let endless = load(&sandbox, "x/loop", "hostile_loop", within(60_000)).await;
    let busy = load(&sandbox, "x/busy", "hostile_busy", Limits::default()).await;
    let _running = keep_calling(&endless, 16, "");
    let full = || tenant(&sandbox, "x").waiting == 12;
    common::eventually("twelve wait", full).await;
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(call(&busy, MILLISECOND).await.result, Ok(Outcome::Ack));
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Where places are short, a tenant of twice the weight has about twice the time.
#[tokio::test(flavor = "multi_thread")]
async fn time_is_shared_by_weight_where_places_are_short() {
    let sandbox = two_threads(128);
    let limits = |weight| TenantLimits { weight, runnable: 8, ..TenantLimits::default() };
    sandbox.set_tenant("light", limits(100));
    sandbox.set_tenant("heavy", limits(200));
    let mut running = Vec::new();
    for name in ["light/loop", "heavy/loop"] {
        let endless = load(&sandbox, name, "hostile_loop", within(200)).await;
        running.push(keep_calling(&endless, 16, ""));
    }
    let used = |name| tenant(&sandbox, name).account.cpu.as_secs_f64();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = (used("light"), used("heavy"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let ratio = (used("heavy") - before.1) / (used("light") - before.0);
    assert!((1.4..2.8).contains(&ratio), "twice the weight had {ratio} times the time");
}

/// A call that uses more time on a processor than its limit ends, long before its deadline, and is told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_at_its_cpu_limit() {
    let sandbox = two_threads(128);
    let limits = Limits { cpu: Some(Duration::from_millis(50)), ..within(60_000) };
    let endless = load(&sandbox, "x/loop", "hostile_loop", limits).await;
    let ended = call(&endless, "").await;
    let fault = ended.result.expect_err("a fault");
    assert_eq!(fault.kind, FaultKind::Cpu);
    assert!(fault.detail.contains("`limits.cpu`"), "{}", fault.detail);
    assert!(fault.detail.contains("50ms"), "{}", fault.detail);
    assert!(ended.usage.cpu >= Duration::from_millis(50), "{:?}", ended.usage);
    assert!(ended.usage.cpu < Duration::from_millis(500), "{:?}", ended.usage);
    // Waiting is not computing.
    let sleeper = load(&sandbox, "x/sleep", "conformance", limits).await;
    let ended = call(&sleeper, r#"{"do":"sleep","ms":300}"#).await;
    assert_eq!(ended.result, Ok(Outcome::Ack));
}

/// A call that pends in the host holds no place: others of its tenant compute meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_a_host_call_holds_no_place() {
    let sandbox = two_threads(128);
    sandbox.set_tenant("x", TenantLimits { runnable: 1, ..TenantLimits::default() });
    let sleeper = load(&sandbox, "x/sleep", "conformance", within(60_000)).await;
    let _sleeping = keep_calling(&sleeper, 8, r#"{"do":"sleep","ms":60000}"#);
    let asleep = || {
        let x = tenant(&sandbox, "x");
        x.account.instances == 8 && x.computing + x.waiting == 0
    };
    common::eventually("all eight sleep", asleep).await;
    let busy = load(&sandbox, "x/busy", "hostile_busy", within(10_000)).await;
    assert_eq!(call(&busy, MILLISECOND).await.result, Ok(Outcome::Ack));
}

/// Hundreds of calls that are dropped wherever they are: in the end no place, no instance and no turn is left over.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_calls_give_back_whatever_they_had() {
    let sandbox = two_threads(128);
    let bodies = [MILLISECOND, "100000000", r#"{"do":"sleep","ms":20}"#, r#"{"do":"loop"}"#, ""];
    let mut handlers = Vec::new();
    for name in ["a", "b", "c"] {
        sandbox.set_tenant(name, TenantLimits { instances: Some(9), ..TenantLimits::default() });
        let limits = Limits { concurrency: 24, ..within(60_000) };
        handlers.push(load(&sandbox, &format!("{name}/any"), "conformance", limits).await);
        handlers.push(load(&sandbox, &format!("{name}/busy"), "hostile_busy", limits).await);
    }
    let (mut calls, rolls) = (JoinSet::new(), AtomicU64::new(7));
    let roll = |below: u64| {
        let seed = rolls.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        ((seed ^ (seed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % below
    };
    for n in 0..600_usize {
        let handler = handlers[n % handlers.len()].clone();
        let body = bodies[roll(bodies.len() as u64) as usize];
        let patience = Duration::from_micros(roll(40_000));
        calls.spawn(async move {
            let version = handler.begin();
            let _ = tokio::time::timeout(patience, version.call(invocation("m", body))).await;
        });
        if n % 50 == 49 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    calls.join_all().await;
    let free = || {
        sandbox.tenants().iter().all(|tenant| {
            tenant.computing == 0 && tenant.waiting == 0 && tenant.account.instances == 0
        })
    };
    common::eventually("all places are free", free).await;
    // All of them can be had.
    for handler in &handlers {
        let mut calls = JoinSet::new();
        for _ in 0..24 {
            let handler = handler.clone();
            calls.spawn(async move { call(&handler, "1").await.result == Ok(Outcome::Ack) });
        }
        assert!(calls.join_all().await.into_iter().all(|ack| ack));
    }
    let accounts = sandbox.tenants();
    let made: u64 =
        accounts.iter().map(|tenant| tenant.account.calls + tenant.account.dropped).sum();
    assert_eq!(made, 600 + 24 * handlers.len() as u64);
}

/// Two hundred tenants beside an endless one, each with calls that wait: none is forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_tenants_none_is_forgotten() {
    let sandbox = two_threads(128);
    let endless = load(&sandbox, "x/loop", "hostile_loop", within(60_000)).await;
    let _running = keep_calling(&endless, 16, "");
    let mut calls = JoinSet::new();
    for n in 0..200 {
        let busy = load(&sandbox, &format!("t{n}/busy"), "hostile_busy", within(60_000)).await;
        for _ in 0..2 {
            let busy = busy.clone();
            calls.spawn(async move { call(&busy, MILLISECOND).await.result == Ok(Outcome::Ack) });
        }
    }
    let all = tokio::time::timeout(Duration::from_secs(60), calls.join_all()).await;
    assert!(all.expect("all ended").into_iter().all(|ack| ack));
    assert_eq!(sandbox.tenants().len(), 201);
}
