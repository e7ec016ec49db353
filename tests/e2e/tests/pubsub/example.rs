//! The example as it stands in the repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use pumphouse_e2e::pubsub::{Project, Received, emulator};
use pumphouse_e2e::{Host, LONG, Scene, root};
use serde_json::{Value, json};

use crate::common::{HOST, WAYS, done, said, work};

pumphouse_e2e::tests! {
    the_example_bounds_an_order_that_is_never_ready_in_all_four_ways,
    publish_reaches_topics_without_a_host,
    what_is_missing_under_validate_ends_the_start,
    a_body_is_in_no_log_at_any_level,
}

/// `examples/pubsub.toml`, word for word but for the port of the admin side, in a folder like the repository. Emulator
/// and project come from the environment, as the example says.
fn example(project: &Project) -> (Scene, Host) {
    let mut scene = Scene::new("");
    let folder = scene.path("examples");
    fs::create_dir(&folder).unwrap();
    symlink(root().join("guests"), scene.path("guests")).unwrap();
    let text = fs::read_to_string(root().join("examples/pubsub.toml")).unwrap();
    let listen = format!("[host]\nadmin.listen = \"127.0.0.1:{}\"\n", scene.port());
    assert!(text.contains("\n[host]\n"), "{text}");
    fs::write(folder.join("pubsub.toml"), text.replacen("[host]\n", &listen, 1)).unwrap();
    scene.set("PUBSUB_EMULATOR_HOST", emulator().trim_start_matches("http://"));
    scene.set("PUBSUB_PROJECT_ID", &project.name);
    let config = folder.join("pubsub.toml");
    let mut host = scene.spawn_as(&scene.pumphouse(&["run".as_ref(), config.as_os_str()]));
    host.wait_ready();
    (scene, host)
}

fn of<'a>(copies: &'a [Received], source: &str) -> &'a Received {
    let ours = copies.iter().find(|copy| copy.attribute("originalTopic") == source);
    ours.unwrap_or_else(|| panic!("no copy of {source}: {copies:#?}"))
}

/// C-4, C-11: one order goes to all four; each is called with the counts 0, 1 and 2 and then rejects it with its
/// metadata. Another order is taken, what is none is invalid.
fn the_example_bounds_an_order_that_is_never_ready_in_all_four_ways() {
    let project = Project::new("example");
    let (scene, host) = example(&project);
    let sources = WAYS.map(|way| format!("orders-{}", way.name));
    let taken = json!({ "id": "A-1", "quantity": 2 });
    let never = json!({ "id": "A-2", "quantity": 1, "available_in": 1 });
    // Keys of their own: of an ordered subscription the emulator takes all messages without one for one key's, and
    // sends those behind a deferred one again.
    let mut keys = ["a", "b", "c"].into_iter();
    let mut publish = |body: &Value| {
        let key = keys.next().unwrap();
        project.publish_keyed("orders", key, std::slice::from_ref(body)).remove(0)
    };
    let _ = publish(&taken);
    let (poison, unreadable) = (publish(&never), publish(&json!("hello")));
    let copies = project.take("orders-dead-letter", sources.len());
    let invalid = project.take("orders-invalid", sources.len());
    let metrics = host.metrics();
    for source in &sources {
        let copy = of(&copies, source);
        assert_eq!(copy.attribute("originalMessageId"), poison);
        assert_eq!(copy.attribute("rejectionReason"), "DeliveryError");
        assert_eq!(copy.attribute("deliveryCount"), "3");
        assert!(copy.attribute("rejectionMessage").contains("3 of 3"), "{copy:#?}");
        let name = source.trim_start_matches("orders-");
        assert!(copy.attribute("rejectedBy").starts_with(&format!("{name}/")), "{copy:#?}");
        assert!(copy.attribute("rejectionTimestamp").ends_with('Z'), "{copy:#?}");
        assert_eq!(copy.attribute("originalMessageType"), "");
        assert_eq!(copy.body, never.to_string());
        let copy = of(&invalid, source);
        assert_eq!(copy.attribute("originalMessageId"), unreadable);
        assert_eq!(copy.attribute("rejectionReason"), "Unacceptable");
        assert_eq!(copy.body, "hello");
        let of = |outcome| {
            let labels = [("subscription", name), ("outcome", outcome)];
            metrics.sum("pumphouse_deliveries_total", &labels)
        };
        assert_eq!([of("ack"), of("defer"), of("reject")], [1.0, 2.0, 2.0], "{name}");
        let seen = |most: &str| {
            let labels = [("subscription", name), ("le", most)];
            metrics.sum("pumphouse_delivery_count_bucket", &labels)
        };
        // The three orders first; one of them again with 1, and with 2.
        assert_eq!(
            [seen("0.0"), seen("1.0"), seen("2.0")],
            [3.0, 4.0, 5.0],
            "{name}: {}",
            metrics.0
        );
    }
    assert_eq!(host.stop(), 0);
    sources.iter().for_each(|source| project.assert_empty(source));
    // Every subscription has a policy: none of the findings is about counting.
    assert!(!scene.lines().iter().any(|line| line.field("rule") == "F-3"));
    assert!(said(&scene, "a role was not granted; native dead-lettering may be inactive") > 0);
}

/// `pumphouse publish` reaches a topic without a host, with attributes and a key.
fn publish_reaches_topics_without_a_host() {
    let project = Project::new("publish");
    let scene = project.scene(&emulator(), HOST, &work(&WAYS[..1], ""));
    project.create("pull", "reader", &json!({ "enableMessageOrdering": true }));
    let rest = ["pull", "--body", "hello", "--header", "type=greeting", "--key", "a"];
    let ran = scene.command("publish", &rest).ok();
    assert!(ran.stdout.starts_with("published 1 to pubsub"), "{ran:#?}");
    let message = &project.take("reader", 1)[0];
    assert_eq!((message.body.as_str(), message.key.as_str()), ("hello", "a"));
    assert_eq!(message.attribute("type"), "greeting");
}

/// `validate`, the default: what is not there ends the start, all of it by name.
fn what_is_missing_under_validate_ends_the_start() {
    let project = Project::new("nowhere");
    let rest = "dead_letter = { pubsub.topic = \"nowhere-dead\" }";
    let scene = project.scene(&emulator(), HOST, "");
    let table = project.table(&emulator()).replace("\"create\"", "\"validate\"");
    scene.configure(&(table + &work(&WAYS[..1], rest)));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    for name in ["subscriptions/pull", "topics/pull"] {
        assert!(ran.stderr.contains(name), "{name}: {ran:#?}");
    }
}

/// A body is in no line on its way through Pub/Sub, however much is logged.
fn a_body_is_in_no_log_at_any_level() {
    const MARK: &str = "body-mark-5e1c0f77d2a94b13";
    let project = Project::new("quiet");
    let rest = "dead_letter = { pubsub.topic = \"dead\" }";
    let host = format!("log.level = \"trace\"\n{HOST}");
    let scene = project.scene(&emulator(), &host, &work(&WAYS, rest));
    let host = scene.start();
    for way in WAYS {
        let mut rejected = crate::common::reject();
        rejected["mark"] = MARK.into();
        let mut taken = done();
        taken["mark"] = MARK.into();
        let _ = project.publish(way.name, &rejected);
        let _ = project.publish(way.name, &taken);
    }
    let copies = project.take_within(Duration::from_secs(60), "dead", WAYS.len());
    assert!(copies.iter().all(|copy| copy.body.contains(MARK)));
    host.until(LONG, "the others", || scene.guest_said("done").len() == WAYS.len());
    assert_eq!(host.stop(), 0);
    let text = scene.logs()[0].text();
    assert!(!text.contains(MARK), "{}", text.lines().find(|line| line.contains(MARK)).unwrap());
}
