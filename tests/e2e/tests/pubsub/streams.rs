//! Streams that end, with what they had pushed.

use std::time::{Duration, Instant};

use pumphouse_e2e::pubsub::{Project, Tap, emulator};
use pumphouse_e2e::{Host, LONG, Scene, block_on};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};

use crate::common::{
    COUNTED, HOST, PAST_LEASES, PULL, STREAM, STREAM_ORDERED, WORK, counts, done, set, slowly_done,
    subscription, work,
};

pumphouse_e2e::tests! {
    fr_13_a_stream_that_closes_leaves_no_key_blocked,
    a_stream_that_ends_in_mid_batch_is_opened_again_whatever_the_status,
    a_stream_that_may_not_be_opened_says_so_and_goes_on_when_it_may,
    what_a_stream_pushes_beyond_the_bound_is_released_and_comes_again,
    half_a_minute_of_silence_and_then_a_message,
}

fn held(host: &Host, subscription: &str) -> f64 {
    host.metrics().sum("pumphouse_held", &[("subscription", subscription)])
}

fn ended(scene: &Scene, ids: &[String]) -> Vec<String> {
    scene.guest_said("done").into_iter().filter(|id| ids.contains(id)).collect()
}

/// FR-13: the stream is closed while K1 is in the handler and K2 and K3 are held; the next one brings all three again
/// under new ids of acknowledgement. All are settled within ten seconds and in their order, and the key is free.
fn fr_13_a_stream_that_closes_leaves_no_key_blocked() {
    let project = Project::new("fr13");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let tap = Tap::on(&proxy);
    let text = WORK.replace("deadline = \"2s\"", "deadline = \"10s\"")
        + &subscription("stream-ordered", STREAM_ORDERED, &format!("concurrency = 4\n{COUNTED}"));
    let scene = project.scene(&proxy.endpoint(), HOST, &text);
    let host = scene.start();
    let bodies = [slowly_done(3_000), done(), done()];
    let ids = project.publish_keyed("stream-ordered", "k", &bodies);
    host.until(LONG, "K1 in the handler", || scene.calls().len() == 1);
    host.until(LONG, "K2 and K3 held", || held(&host, "stream-ordered") == 2.0);
    let old: Vec<String> = ids.iter().map(|id| tap.wait_for(LONG, id)).collect();
    proxy.reset_streams(code::UNAVAILABLE);
    host.until(LONG, "another stream", || proxy.count("StreamingPull") == 2);
    let closed = Instant::now();
    // A service forgets the leases of a stream that it closes; the emulator keeps them unless it is told.
    project.end_leases("stream-ordered", &old);
    host.until(LONG, "all of them again", || ids.iter().all(|id| tap.ack_ids(id).len() == 2));
    host.until(Duration::from_secs(10), "all three", || {
        set(&ended(&scene, &ids)) == set(&ids) && held(&host, "stream-ordered") == 0.0
    });
    let next = project.publish_keyed("stream-ordered", "k", &[done()]);
    host.until(Duration::from_secs(10), "the next of the key", || ended(&scene, &next) == next);
    assert!(closed.elapsed() < Duration::from_secs(20), "{:?}", closed.elapsed());
    // K1 may have been handled twice, since its acknowledgement came too late; nothing overtook anything.
    let mut order = ended(&scene, &ids);
    order.dedup();
    assert_eq!(order, ids);
    assert!(counts(&scene).values().all(|counts| counts.is_sorted_by(|a, b| a < b)));
    let duplicates = host.metrics().sum("pumphouse_delivered_again_total", &[]);
    assert_eq!(duplicates, 1.0, "K1 came again while it was handled");
    assert_eq!(host.stop(), 0);
    project.assert_empty("stream-ordered");
}

const STATUSES: [u32; 9] = [
    code::OK,
    code::UNAVAILABLE,
    code::INTERNAL,
    code::UNKNOWN,
    code::ABORTED,
    code::CANCELLED,
    code::DEADLINE_EXCEEDED,
    code::RESOURCE_EXHAUSTED,
    15, // DATA_LOSS
];

/// Each status that a stream may end with and that may pass, in the middle of a batch: another stream is opened, and
/// every message is handled, once. What was held is still ours.
fn a_stream_that_ends_in_mid_batch_is_opened_again_whatever_the_status() {
    let project = Project::new("resets");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest = format!("concurrency = 4\n{COUNTED}");
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[STREAM, STREAM_ORDERED], &rest));
    let host = scene.start();
    let mut sent = Vec::new();
    for status in STATUSES {
        let streams = proxy.count("StreamingPull");
        for way in [STREAM, STREAM_ORDERED] {
            for key in ["a", "b"] {
                sent.extend(project.publish_keyed(way.name, key, &vec![slowly_done(150); 6]));
            }
        }
        // What is on its way to a stream that ends is lost with it, until its lease lapses.
        host.until(LONG, "all of the batch in the host", || {
            let held = host.metrics().sum("pumphouse_held", &[]);
            let called = u32::try_from(scene.calls().len()).unwrap();
            f64::from(called) + held >= f64::from(u32::try_from(sent.len()).unwrap())
        });
        assert!(scene.guest_said("done").len() < sent.len(), "in the middle of it");
        proxy.reset_streams(status);
        host.until(LONG, &format!("streams after status {status}"), || {
            proxy.count("StreamingPull") >= streams + 2
        });
        host.until(LONG, &format!("the batch of status {status}"), || {
            scene.guest_said("done").len() >= sent.len()
        });
    }
    assert_eq!(set(&scene.guest_said("done")), set(&sent));
    assert_eq!(scene.calls().len(), sent.len(), "each once");
    assert!(scene.calls().iter().all(|call| call.count == 0));
    assert_eq!(host.readiness(), 200);
    assert_eq!(host.stop(), 0);
    project.assert_empty("stream");
    project.assert_empty("stream-ordered");
}

/// A stream that is refused for good makes the subscription wait, with the reason in its status, and no spin; the
/// other subscription goes on. Once it may, it goes on too.
fn a_stream_that_may_not_be_opened_says_so_and_goes_on_when_it_may() {
    let project = Project::new("denied");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[STREAM, PULL], ""));
    let host = scene.start();
    let denied = proxy.on("StreamingPull").status(code::PERMISSION_DENIED, "not yours");
    proxy.reset_streams(code::UNAVAILABLE);
    host.until(LONG, "the reason", || {
        let status = host.status_of("subscriptions", "stream");
        status["condition"] == "waiting"
            && status["problem"].as_str().is_some_and(|text| text.contains("not yours"))
    });
    assert_eq!(host.readiness(), 503);
    let other = project.publish("pull", &done());
    host.until(LONG, "the other one", || scene.guest_said("done") == [other.clone()]);
    let (before, began) = (denied.count(), Instant::now());
    let id = project.publish("stream", &done());
    std::thread::sleep(Duration::from_secs(3));
    let tries = denied.count() - before;
    assert!(tries <= 12, "{tries} tries in {:?}", began.elapsed());
    block_on(proxy.heal());
    host.until(LONG, "the message behind", || {
        ended(&scene, std::slice::from_ref(&id)) == [id.clone()]
    });
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    project.assert_empty("stream");
}

/// The emulator pushes without a limit. What is beyond the bound goes back with a delay, with one warning, and is
/// handled when it comes again.
fn what_a_stream_pushes_beyond_the_bound_is_released_and_comes_again() {
    let project = Project::new("bound");
    let text = work(&[STREAM], &format!("concurrency = 1\n{COUNTED}"))
        .replace("ordered = false", "ordered = false, held = 10");
    assert!(text.contains("held = 10"));
    let scene = project.scene(&emulator(), HOST, &text);
    let host = scene.start();
    let first = project.publish("stream", &slowly_done(1_500));
    host.until(LONG, "the handler busy", || scene.calls().len() == 1);
    let mut sent = project.publish_all("stream", &vec![done(); 30]);
    sent.push(first);
    host.until(LONG, "held messages", || held(&host, "stream") > 0.0);
    assert!(held(&host, "stream") <= 10.0);
    host.until(PAST_LEASES, "all handled", || set(&scene.guest_said("done")) == set(&sent));
    let counts = counts(&scene);
    assert!(counts.values().all(|counts| counts.len() == 1), "{counts:?}");
    let again = counts.values().filter(|counts| counts[0] > 0).count();
    assert!((1..=20).contains(&again), "{again}");
    let warnings = scene.lines().into_iter().filter(|line| line.field("level") == "WARN");
    let warnings = warnings.filter(|line| line.field("message").contains("held")).count();
    assert_eq!(warnings, 1);
    assert_eq!(host.stop(), 0);
    project.assert_empty("stream");
}

/// Nothing for longer than a keep-alive's interval: the stream is still good, and so is a pull.
fn half_a_minute_of_silence_and_then_a_message() {
    let project = Project::new("silence");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[STREAM, PULL], ""));
    let host = scene.start();
    host.until(LONG, "a stream", || proxy.in_flight("StreamingPull") == 1);
    std::thread::sleep(Duration::from_secs(35));
    assert_eq!(host.readiness(), 200);
    let ids = [STREAM, PULL].map(|way| project.publish(way.name, &done()));
    host.until(Duration::from_secs(10), "both", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(proxy.count("StreamingPull"), 1, "the same stream");
    let metrics = host.metrics();
    for name in ["pumphouse_receive_errors_total", "pumphouse_receive_stalls_total"] {
        assert_eq!(metrics.sum(name, &[]), 0.0, "{name}");
    }
    let trouble = scene.lines().into_iter().filter(|line| line.field("level") == "WARN");
    let trouble: Vec<_> = trouble.filter(|line| line.field("message").contains("receiv")).collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    assert_eq!(host.stop(), 0);
}
