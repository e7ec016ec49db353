//! The broker is away, comes back, answers slowly, or not at all.

use std::time::{Duration, Instant};

use pumphouse_e2e::{Depth, LONG, Queue, block_on, elasticmq, fauxqs, scene, unique};
use pumphouse_test_brokers::proxy::Proxy;
use pumphouse_test_brokers::{ElasticMq, Fauxqs, Storage};

use crate::common::{HOST, PAST_LEASES, WORK, done, set, slowly_done, subscription, work};

pumphouse_e2e::tests! {
    a_broker_that_is_away_is_waited_for,
    a_server_killed_while_handling_loses_nothing,
    cut_slow_and_silent_connections_lose_nothing,
    fr_33_a_receive_that_never_returns_stops_nothing,
    long_polls_never_use_up_the_connections_of_settling,
}

/// A broker that is away at the start is waited for, and readiness says so; so is one that dies while the host runs.
fn a_broker_that_is_away_is_waited_for() {
    let mut server = block_on(Fauxqs::start()).unwrap();
    let endpoint = server.endpoint();
    server.kill();
    let name = unique("away");
    let scene = scene(&endpoint, HOST, &work(&name, ""));
    let mut host = scene.spawn();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    host.until(LONG, "the reason", || {
        let status = host.status_of("subscriptions", "work");
        status["condition"] == "waiting" && status["problem"].is_string()
    });
    assert!(host.runs());
    let source = Queue::at(&endpoint, &name);
    let handles = |what: &str| {
        host.until(PAST_LEASES, what, || host.readiness() == 200);
        let id = source.send(&done());
        host.until(LONG, what, || scene.guest_said("done").contains(&id));
    };
    block_on(server.restart()).unwrap();
    handles("a broker that came up late");
    server.kill();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(server.restart()).unwrap();
    // What this server had went with it, the queue included.
    let _ = Queue::create(&endpoint, &name, &serde_json::json!({}));
    handles("a broker that was gone for a while");
    assert_eq!(host.stop(), 0);
}

/// The server is killed while messages are handled, and started again: none is lost.
fn a_server_killed_while_handling_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server =
        block_on(ElasticMq::start(Storage::Durable(folder.path().to_owned()))).unwrap();
    let endpoint = server.endpoint();
    let (name, dead) = (unique("killed"), unique("killed-dead"));
    let rest = format!("concurrency = 8\ndead_letter = {{ sqs.queue = \"{dead}\" }}");
    let scene = scene(&endpoint, HOST, &work(&name, &rest));
    let host = scene.start();
    let (source, dead) = (Queue::at(&endpoint, &name), Queue::at(&endpoint, &dead));
    let handled = source.send_all(&slowly_done(300), 30);
    let rejected = source.send_all(&crate::common::reject(), 10);
    host.until(LONG, "some calls", || host.log.calls().len() >= 6);
    server.kill();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(server.restart()).unwrap();
    host.until(PAST_LEASES, "every message handled", || {
        set(&handled).is_subset(&set(&scene.guest_said("done")))
    });
    source.until(PAST_LEASES, Depth::NONE);
    assert_eq!(host.readiness(), 200);
    assert_eq!(host.stop(), 0);
    // A copy whose confirmation died with the server may be there twice; none is missing.
    let there = usize::try_from(dead.depth().visible).unwrap();
    let copies = dead.take(there);
    let originals: Vec<String> = copies
        .iter()
        .map(|copy| {
            pumphouse_e2e::unpacked(copy).0["originalMessageId"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(set(&originals), set(&rejected));
    let said = host_said(&scene, "receiving fails; trying again with backoff");
    assert!((1..=3).contains(&said), "trouble is said when it begins, not each time: {said}");
}

fn host_said(scene: &pumphouse_e2e::Scene, message: &str) -> usize {
    scene.lines().iter().filter(|line| line.field("message") == message).count()
}

/// Connections are cut, refused for a while, slowed down, and fall silent: after each, everything is handled.
fn cut_slow_and_silent_connections_lose_nothing() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let name = unique("cut");
    let scene = scene(&proxy.endpoint(), HOST, &work(&name, "concurrency = 8"));
    let host = scene.start();
    let source = Queue::at(&server, &name);
    let mut sent = Vec::new();
    let mut handled = |what: &str| {
        sent.extend(source.send_all(&slowly_done(50), 12));
        host.until(PAST_LEASES, what, || set(&sent).is_subset(&set(&scene.guest_said("done"))));
    };
    handled("before anything happened");
    block_on(proxy.cut_once());
    handled("after all connections were closed once");
    block_on(proxy.cut_all());
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(proxy.heal());
    handled("after connections were refused");
    proxy.slow(20_000);
    handled("over slow connections");
    proxy.slow(0);
    proxy.half_open();
    handled("after all connections fell silent");
    host.until(LONG, "readiness", || host.readiness() == 200);
    source.until(PAST_LEASES, Depth::NONE);
    assert_eq!(host.stop(), 0);
    assert!(host_said(&scene, "receiving again") > 0);
}

/// FR-33: receives that are never answered, or of which only the head is, are given up by the host's own bound; the
/// other subscription does not notice, and the count of stalls says what happened.
fn fr_33_a_receive_that_never_returns_stops_nothing() {
    let server = fauxqs();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let (hung, other) = (unique("fr33-hung"), unique("fr33-other"));
    let text = WORK.to_owned()
        + &subscription("hung", &hung, "concurrency = 1")
        + &subscription("other", &other, "concurrency = 1");
    let scene = scene(&proxy.endpoint(), "grace = \"4s\"", &text);
    let host = scene.start();
    let about = |queue: &str| {
        let queue = queue.to_owned();
        move |input: &serde_json::Value| {
            input["QueueUrl"].as_str().is_some_and(|url| url.ends_with(&queue))
        }
    };
    let silent = proxy.on("ReceiveMessage").when(about(&hung)).times(1).hang();
    let half = proxy.on("ReceiveMessage").when(about(&hung)).times(1).headers_only();
    let (hung, other) = (Queue::at(&server, &hung), Queue::at(&server, &other));
    host.until(LONG, "a receive that hangs", || silent.count() == 1);
    let began = Instant::now();
    let id = hung.send(&done());
    // Meanwhile the other one works, as long as the first is silent.
    for _ in 0..3 {
        let id = other.send(&done());
        host.until(Duration::from_secs(10), "the other subscription", || {
            scene.guest_said("done").contains(&id)
        });
    }
    host.until(LONG, "trouble that shows", || {
        host.status_of("subscriptions", "hung")["condition"] == "waiting"
    });
    assert_eq!(host.status_of("subscriptions", "other")["condition"], "running");
    host.until(Duration::from_secs(60), "the message behind", || {
        scene.guest_said("done").contains(&id)
    });
    assert_eq!((silent.count(), half.count()), (1, 1));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let metrics = host.metrics();
    let of = |name, subscription| metrics.sum(name, &[("subscription", subscription)]);
    assert_eq!(of("pumphouse_receive_stalls_total", "hung"), 2.0);
    assert_eq!(of("pumphouse_receive_stalls_total", "other"), 0.0);
    assert_eq!(of("pumphouse_receive_errors_total", "other"), 0.0);
    assert_eq!(host.stop(), 0);
}

/// Many subscriptions wait in long polls; settling does not wait for any of them.
fn long_polls_never_use_up_the_connections_of_settling() {
    let server = elasticmq();
    let proxy = block_on(Proxy::start(&server)).unwrap();
    let queues: Vec<String> = (0..12).map(|_| unique("polls")).collect();
    let each = |(number, queue): (usize, &String)| subscription(&format!("s{number}"), queue, "");
    let text = WORK.to_owned() + &queues.iter().enumerate().map(each).collect::<String>();
    let scene = scene(&proxy.endpoint(), "grace = \"40s\"", &text);
    let host = scene.start();
    // A tenant that has handled nothing yet asks with one poll of each subscription at a time (C-18).
    host.until(LONG, "all of them polling", || proxy.in_flight("ReceiveMessage") >= 12);
    let queue = Queue::at(&server, &queues[7]);
    let _ = queue.send(&done());
    let began = Instant::now();
    host.until(LONG, "the call", || !host.log.calls().is_empty());
    queue.until(Duration::from_secs(5), Depth::NONE);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(proxy.in_flight("ReceiveMessage") >= 11, "they still wait");
    host.kill();
}
