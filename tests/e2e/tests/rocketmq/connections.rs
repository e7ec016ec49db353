//! Connections that are cut, slow or silent, and a broker that can't be reached.

use std::time::{Duration, Instant};

use pumphouse_e2e::rocketmq::{Space, Where, proxy, started};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::remoting::{Server, code};
use pumphouse_test_brokers::{Certificate, Setup};
use serde_json::json;

use crate::common::{
    DEAD, FIFO, HOST, NORMAL, PAST_LEASES, WAYS, WORK, about, counts_of, done, reject, said,
    saying, send, send_many, send_to, set, slowly_done, subscription, work,
};

pumphouse_e2e::tests! {
    cut_slow_and_silent_connections_lose_nothing,
    a_rocketmq_that_is_away_at_the_start_is_waited_for,
    a_broker_that_is_away_is_waited_for_without_a_flood_of_lines,
    fr_33_a_poll_that_never_returns_stops_nothing,
    half_a_minute_of_silence_and_then_a_message,
    signed_requests_over_tls,
}

/// Name server and broker are away at the start: they are waited for, and readiness says so. Then the name server is
/// there alone.
fn a_rocketmq_that_is_away_at_the_start_is_waited_for() {
    let space = Space::new("away");
    let proxy = proxy();
    block_on(proxy.refuse(true));
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let mut host = scene.spawn();
    let waits = |what: &str| {
        for way in WAYS {
            host.until(LONG, what, || {
                let status = host.status_of("subscriptions", way.name);
                status["condition"] == "waiting" && status["problem"].is_string()
            });
        }
        assert_eq!(host.readiness(), 503, "{what}");
    };
    waits("no name server");
    block_on(proxy.refuse_only(Server::Namesrv, false));
    waits("no broker");
    block_on(proxy.refuse(false));
    host.until(PAST_LEASES, "readiness", || host.readiness() == 200);
    let ids = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    assert!(host.runs());
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// The broker is away for a quarter of a minute while the host runs: readiness is refused, trouble is said when it
/// begins and not each time, and everything is handled afterwards.
fn a_broker_that_is_away_is_waited_for_without_a_flood_of_lines() {
    let space = Space::new("flood");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let before = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&before));
    let lines = scene.lines().len();
    block_on(proxy.refuse(true));
    block_on(proxy.cut());
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    std::thread::sleep(Duration::from_secs(15));
    let new: Vec<String> = scene.lines()[lines..].iter().map(|line| line.text.clone()).collect();
    assert!(new.len() <= 10, "{} lines: {new:#?}", new.len());
    assert_eq!(said(&scene, "receiving fails; trying again with backoff"), WAYS.len(), "{new:#?}");
    block_on(proxy.heal());
    let after = WAYS.map(|way| send(&space, way, &done()));
    host.until(PAST_LEASES, "both", || set(&after).is_subset(&set(&scene.guest_said("done"))));
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// After so long without a byte the client gives a connection up, where no request ended by the client's own time before.
const SILENCE: Duration = Duration::from_secs(120);

/// Connections are cut, refused for a while, slowed down, and fall silent: after each, everything is handled.
fn cut_slow_and_silent_connections_lose_nothing() {
    let space = Space::new("cut");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, "concurrency = 4"));
    let host = scene.start();
    let mut sent = Vec::new();
    let mut handled_within = |limit: Duration, what: &str| {
        for way in WAYS {
            sent.extend(send_many(&space, way, &slowly_done(30), 6));
        }
        host.until(limit, what, || set(&sent).is_subset(&set(&scene.guest_said("done"))));
    };
    let mut handled = |what: &str| handled_within(PAST_LEASES, what);
    handled("before anything happened");
    block_on(proxy.cut());
    handled("after all connections were closed once");
    block_on(proxy.refuse(true));
    block_on(proxy.cut());
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    block_on(proxy.heal());
    handled("after connections were refused");
    proxy.slow(20_000);
    handled("over slow connections");
    proxy.slow(0);
    proxy.half_open();
    handled_within(SILENCE + PAST_LEASES, "after all connections fell silent");
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    assert!(said(&scene, "receiving again") > 0, "{:#?}", saying(&scene, "receiving again"));
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-33: a pop that is never answered is given up at its wait and a margin. The stall is counted and shown, the other
/// subscriptions do not notice, and the next pop brings what is there.
fn fr_33_a_poll_that_never_returns_stops_nothing() {
    let space = Space::new("fr33");
    let proxy = proxy();
    let text = WORK.to_owned()
        + &subscription("hung", NORMAL, "concurrency = 1")
        + &subscription("hung-fifo", FIFO, "concurrency = 1")
        + &subscription("normal", NORMAL, "concurrency = 1")
        + &subscription("fifo", FIFO, "concurrency = 1");
    let scene = space.scene(&proxy.namesrv(), "grace = \"4s\"", &text);
    let host = scene.start();
    let hung = ["hung", "hung-fifo"]
        .map(|name| proxy.on(code::POP_MESSAGE).when(about(&space, name)).times(1).hang());
    host.until(LONG, "pops that hang", || hung.iter().all(|rule| rule.count() == 1));
    let began = Instant::now();
    let behind =
        [send_to(&space, "hung", NORMAL, &done()), send_to(&space, "hung-fifo", FIFO, &done())];
    for other in [NORMAL, FIFO, NORMAL, FIFO] {
        let id = send(&space, other, &done());
        host.until(Duration::from_secs(10), "another subscription", || {
            scene.guest_said("done").contains(&id)
        });
    }
    host.until(Duration::from_secs(30), "the messages behind", || {
        behind.iter().all(|id| scene.guest_said("done").contains(id))
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let metrics = host.metrics();
    let of = |name, subscription| metrics.sum(name, &[("subscription", subscription)]);
    for name in ["hung", "hung-fifo"] {
        assert_eq!(of("pumphouse_receive_stalls_total", name), 1.0, "{name}");
    }
    for other in ["normal", "fifo"] {
        assert_eq!(of("pumphouse_receive_stalls_total", other), 0.0, "{other}");
        assert_eq!(of("pumphouse_receive_errors_total", other), 0.0, "{other}");
    }
    assert_eq!(host.stop(), 0);
}

/// Nothing for longer than a connection's heartbeat takes: the connections are still good, nothing is said, and a
/// message is handled at once.
fn half_a_minute_of_silence_and_then_a_message() {
    let space = Space::new("silence");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    host.until(LONG, "polls", || proxy.in_flight(code::POP_MESSAGE) >= 2);
    let (lines, connections) = (scene.lines().len(), proxy.open_connections());
    std::thread::sleep(Duration::from_secs(35));
    assert_eq!(host.readiness(), 200);
    let new: Vec<String> = scene.lines()[lines..].iter().map(|line| line.text.clone()).collect();
    assert_eq!(new, Vec::<String>::new(), "nothing happened");
    assert!(proxy.open_connections() <= connections, "no connection after the other");
    let ids = WAYS.map(|way| send(&space, way, &done()));
    host.until(Duration::from_secs(10), "both", || set(&scene.guest_said("done")) == set(&ids));
    let metrics = host.metrics();
    for name in ["pumphouse_receive_errors_total", "pumphouse_receive_stalls_total"] {
        assert_eq!(metrics.sum(name, &[]), 0.0, "{name}");
    }
    assert_eq!(host.stop(), 0);
}

/// Name server and broker take signed requests alone, over TLS with a certificate of ours: topics are made, messages
/// published, deferred, rejected and read again with them. With another secret the start ends, without saying either.
fn signed_requests_over_tls() {
    const SECRET: &str = "a secret of 16 or more";
    let folder = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(folder.path(), "ours").unwrap();
    let setup = Setup::default().login("pumphouse", SECRET).mutual_tls(&certificate);
    let server = started(setup);
    let space = Space::at(&Where::of(&server), "signed");
    let Certificate { certificate, key } = &certificate;
    let table = format!(
        "[rocketmq]\naccess = {{ key = \"pumphouse\", secret = {{ env = \"ROCKETMQ_SECRET\" }} }}\ntls = {{ trust = \"{certificate}\", certificate = \"{certificate}\", key = \"{key}\" }}\n"
    );
    let again = WAYS.map(|way| subscription(&format!("dead-{}", way.name), way, "rejected = true"));
    let text = work(&WAYS, DEAD) + &again.concat();
    let text = space.text(&space.place().namesrv, "create", &text);
    let mut scene = space.scene(&space.place().namesrv, HOST, "");
    scene.configure(&text.replacen("[rocketmq]\n", &table, 1));
    scene.set("ROCKETMQ_SECRET", "another secret");
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("denied"), "{ran:#?}");
    assert!(!ran.stderr.contains(SECRET) && !ran.stderr.contains("another secret"), "{ran:#?}");

    scene.set("ROCKETMQ_SECRET", SECRET);
    let host = scene.start();
    let steps = json!([{ "do": "defer", "ms": 100 }, reject(), done()]);
    let body = json!({ "do": "sequence", "steps": steps });
    let ids = WAYS.map(|way| scene.publish(way.name, &body));
    host.until(PAST_LEASES, "both copies", || scene.guest_said("done").len() == WAYS.len());
    for (way, id) in WAYS.iter().zip(&ids) {
        assert_eq!(counts_of(&scene, id), [0, 1], "{}", way.name);
    }
    assert_eq!(host.metrics().sum("pumphouse_settle_failures_total", &[]), 0.0);
    assert_eq!(host.stop(), 0);
    let lines: String = scene.lines().into_iter().map(|line| line.text).collect();
    assert!(!lines.contains(SECRET), "the secret is in no line");
}
