//! The broker is away, comes back empty, answers slowly, or not at all.

use std::time::{Duration, Instant};

use pumphouse_e2e::pubsub::{Project, emulator, subscription_of};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::PubsubEmulator;
use pumphouse_test_brokers::grpc::GrpcProxy;

use crate::common::{
    HOST, PAST_LEASES, PULL, STREAM, WAYS, WORK, done, reject, said, set, slowly_done,
    subscription, work,
};

pumphouse_e2e::tests! {
    cut_slow_and_silent_connections_lose_nothing,
    an_emulator_killed_while_handling_is_waited_for_and_furnished_again,
    a_broker_that_is_away_at_the_start_is_waited_for,
    fr_33_a_pull_that_never_returns_stops_nothing,
}

/// A broker that is away at the start is waited for, and readiness says so.
fn a_broker_that_is_away_at_the_start_is_waited_for() {
    let project = Project::new("away");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    block_on(proxy.refuse(true));
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[PULL, STREAM], ""));
    let mut host = scene.spawn();
    for name in ["pull", "stream"] {
        host.until(LONG, "the reason", || {
            let status = host.status_of("subscriptions", name);
            status["condition"] == "waiting" && status["problem"].is_string()
        });
    }
    assert_eq!(host.readiness(), 503);
    assert!(host.runs());
    block_on(proxy.refuse(false));
    host.until(Duration::from_secs(90), "readiness", || host.readiness() == 200);
    let ids = [PULL, STREAM].map(|way| project.publish(way.name, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(host.stop(), 0);
}

/// The emulator is killed while messages are handled, and started again: what it had is gone with it, topics and
/// subscriptions included. With `create` they are made again; the host says what happened, and goes on.
fn an_emulator_killed_while_handling_is_waited_for_and_furnished_again() {
    let mut server = block_on(PubsubEmulator::start()).unwrap();
    let project = Project::at(&server.endpoint(), "reborn");
    let rest = "dead_letter = { pubsub.topic = \"dead\" }";
    let scene = project.scene(&server.endpoint(), HOST, &work(&WAYS, rest));
    let host = scene.start();
    for way in WAYS {
        let _ = project.publish_all(way.name, &vec![slowly_done(500); 20]);
    }
    host.until(LONG, "some calls", || host.log.calls().len() >= 8);
    server.kill();
    host.until(LONG, "readiness that is refused", || host.readiness() == 503);
    host.until(LONG, "what failed", || {
        said(&scene, "receiving fails; trying again with backoff") > 0
    });
    block_on(server.restart()).unwrap();
    for way in WAYS {
        project.wait_for(Duration::from_secs(90), way.name);
    }
    host.until(Duration::from_secs(90), "readiness", || host.readiness() == 200);
    let ids = WAYS.map(|way| project.publish(way.name, &done()));
    host.until(LONG, "messages of the new life", || {
        set(&ids).is_subset(&set(&scene.guest_said("done")))
    });
    let rejected = WAYS.map(|way| project.publish(way.name, &reject()));
    let copies = project.take("dead", WAYS.len());
    let originals: Vec<String> =
        copies.iter().map(|copy| copy.attribute("originalMessageId").to_owned()).collect();
    assert_eq!(set(&originals), set(&rejected));
    assert_eq!(host.stop(), 0);
}

/// Connections are cut, refused for a while, slowed down, and fall silent: after each, everything is handled.
fn cut_slow_and_silent_connections_lose_nothing() {
    let project = Project::new("cut");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, "concurrency = 4"));
    let host = scene.start();
    let mut sent = Vec::new();
    let mut handled = |what: &str| {
        for way in WAYS {
            sent.extend(project.publish_keyed(way.name, "a", &vec![slowly_done(30); 3]));
            sent.extend(project.publish_keyed(way.name, "b", &vec![slowly_done(30); 3]));
        }
        host.until(PAST_LEASES, what, || set(&sent).is_subset(&set(&scene.guest_said("done"))));
    };
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
    let (streams, pulls) = (proxy.count("StreamingPull"), proxy.count("Pull"));
    proxy.half_open();
    host.until(PAST_LEASES, "others in place of the silent ones", || {
        proxy.count("StreamingPull") >= streams + 2 && proxy.count("Pull") >= pulls + 2
    });
    // The emulator has not noticed, and would push to the silent streams for ever.
    block_on(proxy.cut());
    handled("after all connections fell silent");
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| project.assert_empty(way.name));
    assert!(said(&scene, "receiving again") > 0);
}

/// FR-33: a pull that is never answered ends at its own deadline, as a wait without a message may; whoever does not
/// answer the question whether it is there either, is not. The stall is counted and shown, the other subscriptions do
/// not notice, and the next pull brings what is there.
fn fr_33_a_pull_that_never_returns_stops_nothing() {
    let project = Project::new("fr33");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let text = WORK.to_owned()
        + &subscription("hung", PULL, "concurrency = 1")
        + &subscription("pull", PULL, "concurrency = 1")
        + &subscription("stream", STREAM, "concurrency = 1");
    let scene = project.scene(&proxy.endpoint(), "grace = \"4s\"", &text);
    let host = scene.start();
    let name = format!("projects/{}/subscriptions/hung", project.name);
    let hung = |method: &str| {
        let name = name.clone();
        proxy.on(method).when(move |request| subscription_of(request) == name).times(1).hang()
    };
    let (silent, _unconfirmed) = (hung("Pull"), hung("GetSubscription"));
    host.until(LONG, "a pull that hangs", || silent.count() == 1);
    let began = Instant::now();
    let id = project.publish("hung", &done());
    for other in ["pull", "stream", "pull"] {
        let id = project.publish(other, &done());
        host.until(Duration::from_secs(10), "another subscription", || {
            scene.guest_said("done").contains(&id)
        });
    }
    host.until(Duration::from_secs(30), "the message behind", || {
        scene.guest_said("done").contains(&id)
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let metrics = host.metrics();
    let of = |name, subscription| metrics.sum(name, &[("subscription", subscription)]);
    assert_eq!(of("pumphouse_receive_stalls_total", "hung"), 1.0);
    assert_eq!(said(&scene, "receiving fails; trying again with backoff"), 1);
    for other in ["pull", "stream"] {
        assert_eq!(of("pumphouse_receive_stalls_total", other), 0.0);
        assert_eq!(of("pumphouse_receive_errors_total", other), 0.0);
    }
    assert_eq!(host.stop(), 0);
}
