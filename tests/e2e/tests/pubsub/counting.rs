//! Budgets, windows and delays.

use std::time::Duration;

use pumphouse_e2e::pubsub::{Project, deadline, emulator, subscription_of};
use pumphouse_e2e::{LONG, Scene, block_on};
use pumphouse_test_brokers::grpc::{GrpcProxy, code};
use serde_json::json;

use crate::common::{
    COUNTED, HOST, PULL, STREAM, WAYS, WORK, counts, done, said, subscription, work,
};

pumphouse_e2e::tests! {
    fr_02_without_a_policy_the_window_bounds_and_the_finding_is_said_once,
    fr_02_with_a_policy_that_somebody_else_made_deliveries_are_counted,
    fr_03_the_budget_is_one_number,
    fr_32_a_delay_beyond_the_brokers_limit_is_shortened,
}

/// The findings of rule F-3 that a scene's hosts logged of a subscription.
fn uncounted(scene: &Scene, subscription: &str) -> Vec<String> {
    let lines = scene.lines().into_iter();
    let ours =
        lines.filter(|l| l.field("rule") == "F-3" && l.field("subscription") == subscription);
    ours.map(|line| line.field("finding").to_owned()).collect()
}

/// FR-02, F-3, S-3: a subscription without a dead-letter policy says 0 for ever. The finding names it once, streams
/// that are opened again included; no message is deferred for ever, since the window ends it.
fn fr_02_without_a_policy_the_window_bounds_and_the_finding_is_said_once() {
    let project = Project::new("fr02");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let rest = "max_deliveries = 3\nretry = { backoff = \"1s\", max_backoff = \"1s\", window = \"8s\" }\ndead_letter = { pubsub.topic = \"dead\" }";
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, rest));
    let host = scene.start();
    host.until(LONG, "two streams", || proxy.in_flight("StreamingPull") == 2);
    proxy.reset_streams(code::UNAVAILABLE);
    host.until(LONG, "two others", || {
        proxy.count("StreamingPull") >= 4 && proxy.in_flight("StreamingPull") == 2
    });
    host.until(LONG, "readiness", || host.readiness() == 200);
    let defer = json!({ "do": "defer" });
    let ids: Vec<String> = WAYS.iter().map(|way| project.publish(way.name, &defer)).collect();
    let copies = project.take_within(Duration::from_secs(60), "dead", WAYS.len());
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (way, id) in WAYS.iter().zip(&ids) {
        let found = uncounted(&scene, way.name);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(way.name) && found[0].contains("dead-letter policy"),
            "{found:?}"
        );
        // More often than the budget says: that is what the finding is about.
        assert!(counts[id].len() > 3 && counts[id].iter().all(|count| *count == 0), "{counts:?}");
        let copy = copies.iter().find(|copy| copy.attribute("originalMessageId") == id).unwrap();
        assert_eq!(copy.attribute("rejectionReason"), "DeliveryError");
        assert!(copy.attribute("rejectionMessage").contains("window"), "{copy:#?}");
        project.assert_empty(way.name);
    }
}

/// FR-02, C-15: a policy that was there before the host makes the count advance although the configuration has none,
/// and a subscription without one beside it does not.
fn fr_02_with_a_policy_that_somebody_else_made_deliveries_are_counted() {
    let project = Project::new("fr02-found");
    project.create("native", "native", &json!({}));
    let policy = json!({
        "deadLetterTopic": format!("projects/{}/topics/native", project.name),
        "maxDeliveryAttempts": 30,
    });
    let settings = json!({ "deadLetterPolicy": policy, "ackDeadlineSeconds": 60 });
    project.create("pull", "pull", &settings);
    project.create("stream", "stream", &settings);
    let rest = "max_deliveries = 3\nretry = { backoff = \"1s\", max_backoff = \"1s\", window = \"1h\" }\ndead_letter = { pubsub.topic = \"dead\" }";
    let scene = project.scene(&emulator(), HOST, &work(&[PULL, STREAM], rest));
    let host = scene.start();
    let ids = [PULL, STREAM].map(|way| project.publish(way.name, &json!({ "do": "defer" })));
    let copies = project.take("dead", 2);
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (way, id) in [PULL, STREAM].iter().zip(&ids) {
        assert_eq!(counts[id], [0, 1, 2]);
        assert!(uncounted(&scene, way.name).is_empty());
        assert!(copies.iter().any(|copy| copy.attribute("originalMessageId") == id));
        // It stays as it was found.
        assert_eq!(project.subscription(way.name)["deadLetterPolicy"], policy);
    }
}

/// FR-03, C-4: budgets 1, 2 and 3 are as many calls at most, and here, where no receive is lost, exactly, in all four
/// ways.
fn fr_03_the_budget_is_one_number() {
    let project = Project::new("fr03");
    let all: Vec<(usize, String, String)> = (1..=3)
        .flat_map(|budget| WAYS.map(|way| (budget, way)))
        .map(|(budget, way)| {
            let name = format!("{}-{budget}", way.name);
            let rest = format!(
                "max_deliveries = {budget}\nretry = {{ backoff = \"1s\", max_backoff = \"1s\" }}\ndead_letter = {{ pubsub.topic = \"dead\" }}\n{COUNTED}"
            );
            let text = subscription(&name, way, &rest);
            (budget, name, text)
        })
        .collect();
    let text: String = all.iter().map(|(_, _, text)| text.as_str()).collect();
    let scene = project.scene(&emulator(), HOST, &(WORK.to_owned() + &text));
    let host = scene.start();
    let defer = json!({ "do": "defer" });
    let ids: Vec<String> = all.iter().map(|(_, name, _)| project.publish(name, &defer)).collect();
    let copies = project.take_within(Duration::from_secs(60), "dead", all.len());
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (id, (budget, name, _)) in ids.iter().zip(&all) {
        let wanted: Vec<u32> = (0..u32::try_from(*budget).unwrap()).collect();
        assert_eq!(counts[id], wanted, "{name}");
        let copy = copies.iter().find(|copy| copy.attribute("originalMessageId") == id).unwrap();
        assert_eq!(copy.attribute("deliveryCount"), budget.to_string());
        project.assert_empty(name);
    }
}

/// FR-32, S-2: one change of a deadline is at most 600 s. A longer delay is shortened to that, counted, and logged
/// once; the request is sent once and not refused.
fn fr_32_a_delay_beyond_the_brokers_limit_is_shortened() {
    let project = Project::new("fr32");
    let proxy = block_on(GrpcProxy::start(&emulator())).unwrap();
    let scene = project.scene(&proxy.endpoint(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let longer = json!({ "do": "defer", "ms": 900_000 });
    let longest = json!({ "do": "defer", "ms": 600_000 });
    for way in WAYS {
        let _ = project.publish_all(way.name, &[longer.clone(), longer.clone(), longest.clone()]);
    }
    let asked = |way: &str| -> Vec<u64> {
        let name = format!("projects/{}/subscriptions/{way}", project.name);
        let requests = proxy.requests();
        let ours = requests.iter().filter(|seen| subscription_of(&seen.body) == name);
        ours.filter_map(deadline)
            .flat_map(|it| it.ack_ids.iter().map(|_| it.seconds).collect::<Vec<_>>())
            .collect()
    };
    for way in WAYS {
        host.until(LONG, "three releases", || asked(way.name).len() >= 3);
        let of = |name| host.metrics().sum(name, &[("subscription", way.name)]);
        assert_eq!(of("pumphouse_delays_shortened_total"), 2.0, "{}", way.name);
        assert_eq!(of("pumphouse_settle_failures_total"), 0.0, "{}", way.name);
    }
    // Nothing is back, and nothing is asked again.
    let _ = project.publish("pull", &done());
    host.until(LONG, "another message", || scene.guest_said("done").len() == 1);
    assert_eq!(scene.calls().len(), 3 * WAYS.len() + 1);
    for way in WAYS {
        assert_eq!(asked(way.name), [600, 600, 600], "{}", way.name);
    }
    let shortened = "a handler asked for a longer delay than the broker gives; it is shortened";
    assert_eq!(said(&scene, shortened), WAYS.len(), "once for each subscription");
    assert_eq!(host.stop(), 0);
}
