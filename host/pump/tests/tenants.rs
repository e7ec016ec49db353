//! C-18: a tenant's bounds hold over all of its subscriptions, before anything is received.

#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{BOTH, Bench, CAPABILITIES, CONCURRENT, always, bench, stop, until, watched};
use pumphouse_contract::Outcome;
use pumphouse_pump::{Pace, Pump};
use tokio::time::{Instant, sleep};

/// A tenant's limit holds over all its subscriptions, and what waits too long for it is given back (C-18).
#[tokio::test(start_paused = true)]
async fn c_18_a_tenants_limit_holds_over_its_subscriptions() {
    let (handler, most) = watched(Duration::from_millis(400));
    let tenant = Arc::new(tokio::sync::Semaphore::new(3));
    let benches: Vec<Bench> = (0..2)
        .map(|_| {
            let mut bench = bench(CAPABILITIES, CONCURRENT, handler.clone());
            bench.subscription.tenant = Some(tenant.clone());
            (0..20).for_each(|n| bench.source.publish(&format!("m{n:02}"), None));
            bench
        })
        .collect();
    let pumps: Vec<Pump> =
        benches.iter().map(|one| Pump::start(one.subscription.clone())).collect();
    until("all handled", || benches.iter().all(|one| one.source.left() == 0)).await;
    assert_eq!((handler.calls().len(), most.load(Ordering::SeqCst)), (40, 3));
    assert!(benches.iter().map(|one| one.notes.count("GivenBack")).sum::<usize>() > 0);
    for pump in &pumps {
        stop(pump).await;
    }
}

/// C-18: the subscriptions of a tenant together receive no faster than its rate; what waits stays at the broker, and
/// nothing is given back.
#[tokio::test(start_paused = true)]
async fn c_18_a_tenants_rate_holds_over_its_subscriptions() {
    for dispatch in BOTH {
        let pace = Arc::new(Pace::new(10));
        let both = [(), ()].map(|()| {
            let mut bench = bench(CAPABILITIES, dispatch, always(Outcome::Ack));
            bench.subscription.pace = Some(pace.clone());
            (0..50).for_each(|n| bench.source.publish(&format!("m{n:02}"), None));
            bench
        });
        let began = Instant::now();
        let pumps = both.each_ref().map(|bench| Pump::start(bench.subscription.clone()));
        until("all handled", || both.iter().all(|bench| bench.source.left() == 0)).await;
        let took = began.elapsed();
        // A hundred messages, ten a second; the last ones may come a second early, with what was received at once.
        assert!((8..=12).contains(&took.as_secs()), "{dispatch:?} took {took:?}");
        let shares = both.each_ref().map(|bench| bench.handler.calls().len());
        assert_eq!(shares, [50, 50]);
        assert!(both.iter().all(|bench| bench.notes.count("GivenBack") == 0));
        for pump in &pumps {
            stop(pump).await;
        }
    }
}

/// A poll that waits for messages takes nothing from the tenant's other subscriptions.
#[tokio::test(start_paused = true)]
async fn c_18_an_idle_subscription_costs_nothing_of_a_rate() {
    let pace = Arc::new(Pace::new(10));
    let both = [(), ()].map(|()| {
        let mut bench = bench(CAPABILITIES, CONCURRENT, always(Outcome::Ack));
        bench.subscription.pace = Some(pace.clone());
        bench
    });
    let pumps = both.each_ref().map(|bench| Pump::start(bench.subscription.clone()));
    sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    (0..30).for_each(|n| both[0].source.publish(&format!("m{n:02}"), None));
    until("all handled", || both[0].source.left() == 0).await;
    // A second's worth at once, the rest at ten a second.
    assert!((1..=4).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    for pump in &pumps {
        stop(pump).await;
    }
}

/// A drain does not wait for a tenant's turn.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_wait_for_a_rate() {
    let mut bench = bench(CAPABILITIES, CONCURRENT, always(Outcome::Ack));
    bench.subscription.pace = Some(Arc::new(Pace::new(1)));
    (0..50).for_each(|n| bench.source.publish(&format!("m{n:02}"), None));
    let pump = Pump::start(bench.subscription.clone());
    until("the first", || !bench.handler.calls().is_empty()).await;
    let began = Instant::now();
    stop(&pump).await;
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    assert!(bench.source.left() > 40);
    assert_eq!(bench.notes.count("GivenBack"), 0);
}
