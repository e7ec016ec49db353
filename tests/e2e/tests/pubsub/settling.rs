//! Settlements that are lost on their way, and messages that come twice.

use std::time::Duration;

use pumphouse_e2e::pubsub::{Project, Tap, emulator, subscription_of};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};
use serde_json::json;

use crate::common::{
    COUNTED, HOST, PAST_LEASES, PULL, STREAM, WAYS, Way, counts, done, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    an_acknowledgement_that_fails_as_often_as_it_is_tried_is_handled_again,
    an_acknowledgement_lost_on_its_way_is_sent_again,
    a_release_lost_on_its_way_is_sent_again,
    fr_15_a_duplicate_is_acknowledged_and_not_ignored,
    a_duplicate_that_comes_while_the_first_is_handled_shows_in_the_metrics,
}

/// Requests about one subscription.
fn about(project: &Project, way: Way) -> impl Fn(&[u8]) -> bool + Send + Sync + use<> {
    let name = format!("projects/{}/subscriptions/{}", project.name, way.name);
    move |request: &[u8]| subscription_of(request) == name
}

/// Every try is lost: said once with the message's id, counted, and the message comes again when its lease is over,
/// with a count.
fn an_acknowledgement_that_fails_as_often_as_it_is_tried_is_handled_again() {
    let project = Project::new("never");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[PULL, STREAM], COUNTED));
    let host = scene.start();
    let sent = [PULL, STREAM].map(|way| {
        let lost = proxy.on("Acknowledge").when(about(&project, way)).times(3).drop_before();
        (way, lost, project.publish(way.name, &done()))
    });
    let failed = "settlement failed; the message may be handled again";
    for (way, lost, id) in &sent {
        host.until(LONG, "three lost tries", || lost.count() == 3);
        host.until(LONG, "the failure", || {
            host.log.saying(failed).iter().any(|line| line.field("message_id") == id)
        });
        let failures = host.metrics();
        let failures =
            failures.sum("pumphouse_settle_failures_total", &[("subscription", way.name)]);
        assert_eq!(failures, 1.0, "{}", way.name);
    }
    host.until(PAST_LEASES, "both again", || {
        sent.iter().all(|(.., id)| counts(&scene).get(id).is_some_and(|counts| counts == &[0, 1]))
    });
    assert_eq!(host.log.saying(failed).len(), 2);
    assert_eq!(host.stop(), 0);
    sent.iter().for_each(|(way, ..)| project.assert_empty(way.name));
}

/// Lost before the service has it, or its answer lost: it is sent again, and the message is handled once.
fn an_acknowledgement_lost_on_its_way_is_sent_again() {
    let project = Project::new("lost");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, COUNTED));
    let host = scene.start();
    let mut sent = Vec::new();
    for round in 0..3 {
        let rules = WAYS.map(|way| {
            let on = proxy.on("Acknowledge").when(about(&project, way)).times(1);
            match round {
                0 => on.drop_before(),
                1 => on.drop_after(),
                _ => on.status(code::UNAVAILABLE, "busy"),
            }
        });
        sent.extend(WAYS.map(|way| project.publish(way.name, &done())));
        host.until(LONG, "the lost ones", || rules.iter().all(|rule| rule.count() == 1));
        host.until(LONG, "all handled", || scene.guest_said("done").len() == sent.len());
    }
    assert_eq!(set(&scene.guest_said("done")), set(&sent));
    // The last ones are asked again after a pause, for which a drain may have no time.
    host.until(LONG, "all settled", || {
        let status = host.status();
        let all = status["subscriptions"].as_array().into_iter().flatten();
        all.map(|one| one["in_flight"].as_u64()).all(|left| left == Some(0))
    });
    assert_eq!(host.stop(), 0);
    assert_eq!(scene.calls().len(), sent.len(), "each once");
    let failed = "settlement failed; the message may be handled again";
    assert_eq!(host_log(&scene, failed), Vec::<String>::new());
    WAYS.iter().for_each(|way| project.assert_empty(way.name));
}

fn host_log(scene: &pumphouse_e2e::Scene, message: &str) -> Vec<String> {
    let lines = scene.lines().into_iter().filter(|line| line.field("message") == message);
    lines.map(|line| line.text).collect()
}

/// The same of a release: the message comes back after its delay and not after its lease.
fn a_release_lost_on_its_way_is_sent_again() {
    let project = Project::new("released");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, COUNTED));
    let host = scene.start();
    let body = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 1_000 }, done()] });
    let mut sent = Vec::new();
    for before in [true, false] {
        let rules = WAYS.map(|way| {
            let on = proxy.on("ModifyAckDeadline").when(about(&project, way)).times(1);
            if before { on.drop_before() } else { on.drop_after() }
        });
        sent.extend(WAYS.map(|way| project.publish(way.name, &body)));
        host.until(LONG, "the lost ones", || rules.iter().all(|rule| rule.count() == 1));
        host.until(Duration::from_secs(20), "all handled", || {
            scene.guest_said("done").len() == sent.len()
        });
    }
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    assert!(sent.iter().all(|id| counts[id] == [0, 1]), "{counts:?}");
    WAYS.iter().for_each(|way| project.assert_empty(way.name));
}

/// FR-15: an acknowledgement that never arrives makes the redelivery a duplicate, which is acknowledged without a call
/// and never ends at the dead-letter topic.
fn fr_15_a_duplicate_is_acknowledged_and_not_ignored() {
    let project = Project::new("fr15");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest = format!(
        "max_deliveries = 2\ndeduplicate = {{}}\ndead_letter = {{ pubsub.topic = \"dead\" }}\n{COUNTED}"
    );
    let failed = proxy.on("Acknowledge").times(6).drop_before();
    let tap = Tap::on(&proxy);
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&[PULL, STREAM], &rest));
    let host = scene.start();
    let pulled = project.publish("pull", &done());
    host.until(LONG, "the failed removals", || failed.count() == 3);
    let pushed = project.publish("stream", &done());
    host.until(LONG, "the failed removals", || failed.count() == 6);
    // Its lease is ended for it: that it lapses by itself is another test's.
    project.end_leases("pull", &tap.ack_ids(&pulled));
    project.end_leases("stream", &tap.ack_ids(&pushed));
    // A stream hands nothing over beside a delivery that may still be handled, so this takes until its lease is over.
    host.until(PAST_LEASES, "two duplicates", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) == 2.0
    });
    assert_eq!(host.stop(), 0);
    assert_eq!(scene.calls().len(), 2);
    for name in ["pull", "stream", "dead"] {
        project.assert_empty(name);
    }
}

/// The same message again while its first delivery is handled. On a stream it is seen, counted, and not called beside
/// the first; both end up settled. A pull can't see it: with `deduplicate` it waits for the first and is acknowledged.
fn a_duplicate_that_comes_while_the_first_is_handled_shows_in_the_metrics() {
    let project = Project::new("twice");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let tap = Tap::on(&proxy);
    let rest = format!("concurrency = 4\ndeduplicate = {{}}\n{COUNTED}");
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let sent = WAYS.map(|way| (way, project.publish(way.name, &slowly_done(1_500))));
    for (way, id) in &sent {
        host.until(LONG, "the call", || scene.calls().iter().any(|call| call.id == *id));
        project.end_leases(way.name, &[tap.wait_for(LONG, id)]);
    }
    host.until(LONG, "each twice", || sent.iter().all(|(_, id)| tap.ack_ids(id).len() >= 2));
    host.until(LONG, "duplicates acknowledged", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) == 4.0
    });
    let metrics = host.metrics();
    assert_eq!(host.stop(), 0);
    for (way, id) in &sent {
        let calls = scene.calls().iter().filter(|call| call.id == *id).count();
        assert_eq!(calls, 1, "{}", way.name);
        let pushed = metrics.sum("pumphouse_delivered_again_total", &[("subscription", way.name)]);
        assert_eq!(pushed, if way.mode == "stream" { 1.0 } else { 0.0 }, "{}", way.name);
        project.assert_empty(way.name);
    }
}
