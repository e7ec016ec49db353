//! What tenants may have of the host, and what is known of what they had.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pumphouse_broker::Broker;
use pumphouse_contract::ports::{Event, Handler, Observer};
use pumphouse_contract::{
    Account, Clock, FaultKind, HeaderValue, LeaseBudget, Message, Outcome, Outgoing, Policy,
};
use pumphouse_pump::{Dispatch, Pump, Settings, Sinks, Subscription, SystemClock};
use pumphouse_sandbox::{Limits, LoadedHandler, TenantLimits};
use tokio::task::JoinSet;

use crate::common::{self, call, fault, guest, within};
use crate::tenancy::{load, tenant, two_threads};

fn sleeping(handler: &Arc<LoadedHandler>, calls: usize) -> JoinSet<()> {
    let mut asleep = JoinSet::new();
    for _ in 0..calls {
        let handler = handler.clone();
        asleep.spawn(async move {
            call(&handler, r#"{"do":"sleep","ms":60000}"#).await;
        });
    }
    asleep
}

/// A tenant whose calls all wait in the host has a quarter of the pool, and the others have the rest.
#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_drains_the_pool() {
    let sandbox = two_threads(8);
    let greedy = load(&sandbox, "x/sleep", "conformance", within(60_000)).await;
    let _asleep = sleeping(&greedy, 32);
    let full = || {
        let x = tenant(&sandbox, "x");
        (x.account.instances, x.waiting) == (2, 30)
    };
    common::eventually("a quarter is taken", full).await;
    let other = load(&sandbox, "y/ack", "bench", within(5_000)).await;
    for _ in 0..20 {
        assert_eq!(call(&other, "").await.result, Ok(Outcome::Ack));
    }
    // The tenant's own next call says what is short, and how to raise it.
    let own = load(&sandbox, "x/ack", "bench", within(200)).await;
    let starved = fault(&own, "").await;
    assert_eq!(starved.kind, FaultKind::Starved);
    assert!(starved.detail.contains("`limits.instances` of the tenant"), "{}", starved.detail);
    // Raised, it holds for those that wait, too.
    let limits = TenantLimits { instances: Some(6), ..TenantLimits::default() };
    sandbox.set_tenant("x", limits);
    let more = || tenant(&sandbox, "x").account.instances == 6;
    common::eventually("more may live", more).await;
    assert_eq!(tenant(&sandbox, "x").account.instances_peak, 6);
}

/// Where the pool itself is short, the fault names the pool.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_short_is_named() {
    let sandbox = two_threads(2);
    let all = TenantLimits { instances: Some(2), ..TenantLimits::default() };
    sandbox.set_tenant("x", all);
    let greedy = load(&sandbox, "x/sleep", "conformance", within(60_000)).await;
    let _asleep = sleeping(&greedy, 2);
    common::eventually("the pool is full", || tenant(&sandbox, "x").account.instances == 2).await;
    let other = load(&sandbox, "y/ack", "bench", within(200)).await;
    let starved = fault(&other, "").await;
    assert_eq!(starved.kind, FaultKind::Starved);
    assert!(starved.detail.contains("`host.pool_slots`"), "{}", starved.detail);
}

/// What a tenant logs above its rate is dropped and counted, says so once a second at most, and ends no call.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_log_has_a_rate() {
    let log = common::log();
    let sandbox = two_threads(32);
    let limits = TenantLimits { log_lines_per_second: Some(20), ..TenantLimits::default() };
    sandbox.set_tenant("talker", limits);
    let handler = load(&sandbox, "talker/log", "conformance", within(10_000)).await;
    for n in 0..100 {
        let body = format!(r#"{{"do":"log","text":"line {n} of the talker"}}"#);
        assert_eq!(call(&handler, &body).await.result, Ok(Outcome::Ack));
    }
    let told = || !log.lines_with("log lines dropped").is_empty();
    common::eventually("the drop is told", told).await;
    let account = tenant(&sandbox, "talker").account;
    // Each call logs two lines.
    assert_eq!(account.log_lines + account.log_dropped, 200, "{account:?}");
    assert!((20..150).contains(&account.log_lines), "{account:?}");
    let shown = log.lines_with("talker/log").iter().filter(|l| l.contains("guest log")).count();
    assert_eq!(shown as u64, account.log_lines);
    let dropped = || {
        let told = log.lines_with("log lines dropped");
        let told = told.iter().filter(|line| line.contains(r#""tenant":"talker""#));
        let lines = told.map(|line| {
            assert!(!line.contains("of the talker"), "{line}");
            let number = line.split(r#""lines":"#).nth(1).unwrap();
            number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()
        });
        lines.sum::<u64>()
    };
    common::eventually("all drops are told", || dropped() == account.log_dropped).await;
}

/// Everything that happens is entered: in the tenant's account as the sum of its handlers'.
#[tokio::test(flavor = "multi_thread")]
async fn the_accounts_add_up() {
    let sandbox = two_threads(32);
    let any = load(&sandbox, "acme/any", "conformance", within(300)).await;
    let ack = load(&sandbox, "acme/ack", "bench", Limits::default()).await;
    for body in [
        r#"{"do":"ack"}"#,
        r#"{"do":"defer"}"#,
        r#"{"do":"reject","text":"twelve bytes"}"#,
        r#"{"do":"trap"}"#,
        r#"{"do":"loop"}"#,
    ] {
        call(&any, body).await;
    }
    for _ in 0..7 {
        call(&ack, "").await;
    }
    let cut = tokio::time::timeout(Duration::from_millis(50), call(&any, r#"{"do":"loop"}"#));
    assert!(cut.await.is_err());
    let entered = || tenant(&sandbox, "acme").account.dropped == 1;
    common::eventually("the dropped call is entered", entered).await;
    let acme = tenant(&sandbox, "acme");
    let of = |name: &str| -> Account {
        acme.handlers.iter().find(|handler| handler.name == name).expect(name).account
    };
    let (any, ack, all) = (of("acme/any"), of("acme/ack"), acme.account);
    assert_eq!((any.calls, any.acks, any.defers, any.rejects), (5, 1, 1, 1));
    assert_eq!((any.faults_of(FaultKind::Trap), any.faults_of(FaultKind::Deadline)), (1, 1));
    assert_eq!((ack.calls, ack.acks, ack.dropped), (7, 7, 0));
    assert!(any.cpu > Duration::from_millis(20), "{any:?}");
    assert!(any.memory_peak >= 64 * 1024 && any.memory_peak_lately == any.memory_peak, "{any:?}");
    // Each call logs; and reads nothing else of the host.
    assert!(any.host_calls >= 5 && any.log_lines >= 5, "{any:?}");
    assert!(any.bytes_in >= 60 && any.bytes_out > any.log_bytes, "{any:?}");
    assert_eq!((all.instances, any.instances, ack.instances), (0, 0, 0));
    assert!(ack.instances_peak >= 1 && all.instances_peak >= 1);
    let sums: [(&str, fn(&Account) -> u64); 9] = [
        ("calls", |a| a.calls),
        ("acks", |a| a.acks),
        ("faults", |a| a.faults.iter().sum()),
        ("cpu", |a| a.cpu.as_nanos() as u64),
        ("waited", |a| a.waited.as_nanos() as u64),
        ("host calls", |a| a.host_calls),
        ("bytes in", |a| a.bytes_in),
        ("bytes out", |a| a.bytes_out),
        ("log bytes", |a| a.log_bytes),
    ];
    for (name, figure) in sums {
        assert_eq!(figure(&all), figure(&any) + figure(&ack), "{name}");
    }
}

/// What a guest is given counts with all that comes with its body.
#[tokio::test]
async fn usage_counts_the_whole_message_and_the_answer() {
    let handler = common::load("usage", &guest("conformance"), Limits::default()).await.unwrap();
    let headers = [("type", HeaderValue::from("order")), ("n", HeaderValue::Number("17".into()))];
    let message = Message {
        id: "m-1".into(),
        headers: headers.into_iter().collect(),
        content_type: Some("text/plain".into()),
        ordering_key: Some("key".into()),
        body: r#"{"do":"reject","text":"0123456789"}"#.into(),
        ..Message::default()
    };
    let given = 3 + "orders".len() + 4 + 5 + 1 + 2 + 10 + 3 + message.body.len();
    let mut whole = common::invocation("", "");
    whole.message = message.into();
    let usage = handler.begin().call(whole).await.usage;
    assert_eq!(usage.bytes_in, given as u64);
    assert!(usage.bytes_out > 10, "{usage:?}");
    assert!(usage.host_calls >= 1, "{usage:?}");
}

/// An account goes on from one version of a handler to the next, and the tenant's goes on without any handler.
#[tokio::test]
async fn an_account_outlives_versions() {
    let sandbox = two_threads(32);
    let first = load(&sandbox, "acme/ack", "bench", Limits::default()).await;
    call(&first, "").await;
    let second = load(&sandbox, "acme/ack", "bench", Limits::default()).await;
    drop(first);
    call(&second, "").await;
    assert_eq!(tenant(&sandbox, "acme").handlers[0].account.calls, 2);
    drop(second);
    let acme = tenant(&sandbox, "acme");
    assert_eq!((acme.account.calls, acme.handlers.len()), (2, 0));
}

/// Counts receipts and ends.
#[derive(Default)]
struct Counted {
    received: AtomicUsize,
    removed: AtomicUsize,
}

impl Observer for Counted {
    fn record(&self, event: Event<'_>) {
        match event {
            Event::Received { messages, .. } => {
                self.received.fetch_add(messages, Ordering::SeqCst);
            }
            Event::Settled { action: "ack", failure: None, .. } => {
                self.removed.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

async fn pump(broker: &Broker, queue: &str, handler: Arc<LoadedHandler>) -> (Pump, Arc<Counted>) {
    let counted = Arc::<Counted>::default();
    let subscription = Subscription {
        name: queue.into(),
        source_name: queue.into(),
        source: broker.source(queue).expect("a queue"),
        handler,
        sinks: Sinks::default(),
        deduplicate: None,
        tenant: None,
        pace: None,
        observer: counted.clone(),
        clock: clock(),
        settings: Settings {
            dispatch: Dispatch::Concurrent(32),
            policy: Policy::default(),
            honours_copies: false,
            lease: LeaseBudget {
                queue_wait: Duration::from_secs(5),
                deadline: Duration::from_secs(60),
                linger: Duration::from_millis(5),
                settle_timeout: Duration::from_secs(5),
                settle_tries: 3,
                publish_timeout: None,
                skew: Duration::from_secs(2),
            },
            receive_wait: Duration::from_secs(1),
            receive_margin: Duration::from_secs(10),
        },
    };
    (Pump::start(subscription), counted)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// C-18: a tenant with endless guests and a deep queue receives little more than what runs; the other tenant's pump
/// goes on; and a drain does not wait for room.
#[tokio::test(flavor = "multi_thread")]
async fn c_18_a_tenant_that_burns_its_share_receives_more_slowly() {
    let sandbox = two_threads(128);
    let broker = Broker::memory(clock());
    for (queue, body) in [("deep", ""), ("honest", "400000")] {
        broker.create(queue).await.expect("a queue");
        let sink = broker.sink(queue).expect("a queue");
        for _ in 0..300 {
            let message = Outgoing { body: body.into(), ..Outgoing::default() };
            sink.publish(message).await.expect("room");
        }
    }
    let endless = load(&sandbox, "x/loop", "hostile_loop", within(60_000)).await;
    let honest = load(&sandbox, "y/busy", "hostile_busy", Limits::default()).await;
    let (burning, burnt) = pump(&broker, "deep", endless).await;
    let full = || burnt.received.load(Ordering::SeqCst) >= 8;
    common::eventually("what may run is received", full).await;
    let (working, worked) = pump(&broker, "honest", honest).await;
    let all = || worked.removed.load(Ordering::SeqCst) == 300;
    common::eventually("the other tenant's messages are handled", all).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Four compute and four wait; a receive that was under way may have brought a few more.
    let received = burnt.received.load(Ordering::SeqCst);
    assert!(received <= 16, "{received} messages were received");
    assert!(working.stop(Duration::from_secs(10)).await.clean);
    let began = Instant::now();
    burning.cut();
    assert!(burning.stop(Duration::from_secs(10)).await.clean);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    broker.close().await;
}
