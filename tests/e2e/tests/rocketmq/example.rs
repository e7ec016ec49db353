//! The example as it stands in the repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use pumphouse_e2e::rocketmq::{Space, Stored, Where, message, started};
use pumphouse_e2e::{Host, LONG, Scene, root};
use pumphouse_test_brokers::Setup;
use serde_json::{Value, json};

use crate::common::{DEAD, HOST, PAST_LEASES, WAYS, done, reject, set, work};

pumphouse_e2e::tests! {
    the_example_bounds_an_order_that_is_never_ready_on_both_kinds_of_topic,
    a_body_is_in_no_log_at_any_level,
}

/// `examples/rocketmq.toml`, word for word but for the port of the admin side and the name server, in a folder like
/// the repository.
fn example(place: &Where) -> (Scene, Host) {
    let scene = Scene::new("");
    let folder = scene.path("examples");
    fs::create_dir(&folder).unwrap();
    symlink(root().join("guests"), scene.path("guests")).unwrap();
    let text = fs::read_to_string(root().join("examples/rocketmq.toml")).unwrap();
    let listen = format!("[host]\nadmin.listen = \"127.0.0.1:{}\"\n", scene.port());
    assert!(text.contains("\n[host]\n") && text.contains("\"127.0.0.1:9876\""), "{text}");
    let text = text.replacen("[host]\n", &listen, 1).replace("127.0.0.1:9876", &place.namesrv);
    fs::write(folder.join("rocketmq.toml"), text).unwrap();
    let config = folder.join("rocketmq.toml");
    let mut host = scene.spawn_as(&scene.pumphouse(&["run".as_ref(), config.as_os_str()]));
    host.wait_ready();
    (scene, host)
}

fn of<'a>(copies: &'a [Stored], id: &str) -> &'a Stored {
    let ours = copies.iter().find(|copy| copy.property("originalMessageId") == id);
    ours.unwrap_or_else(|| panic!("no copy of {id}: {copies:#?}"))
}

/// C-4, C-11: an order that is never ready is called with the counts 0, 1 and 2 on each kind of topic, and then
/// rejected with its metadata. Another order is taken, what is none is invalid.
fn the_example_bounds_an_order_that_is_never_ready_on_both_kinds_of_topic() {
    // Its names are the example's: a RocketMQ of its own.
    let server = started(Setup::default());
    let space = Space::bare(&Where::of(&server));
    let (scene, host) = example(space.place());
    let taken = json!({ "id": "A-1", "quantity": 2 });
    let never = json!({ "id": "A-2", "quantity": 1, "available_in": 1 });
    let sources = [("normal", "orders"), ("fifo", "orders-fifo")];
    let sent = sources.map(|(_, source)| {
        let send = |body: &Value, group: &str| space.send_message(source, message(body).of(group));
        let _ = send(&taken, "a");
        (send(&never, "b"), send(&json!("hello"), "c"))
    });
    let dead = space.copies(PAST_LEASES, "orders-dead-letter", 2);
    let invalid = space.copies(LONG, "orders-invalid", 2);
    for ((name, source), (poison, unreadable)) in sources.iter().zip(&sent) {
        let copy = of(&dead, poison);
        assert_eq!(copy.property("rejectionReason"), "DeliveryError");
        assert_eq!(copy.property("deliveryCount"), "3");
        assert!(copy.property("rejectionMessage").contains("3 of 3"), "{copy:#?}");
        assert_eq!(copy.property("originalTopic"), *source);
        assert!(copy.property("rejectedBy").starts_with(&format!("{name}/")), "{copy:#?}");
        assert!(copy.property("rejectionTimestamp").ends_with('Z'), "{copy:#?}");
        assert_eq!((copy.body.as_str(), copy.group.as_str()), (never.to_string().as_str(), "b"));
        let copy = of(&invalid, unreadable);
        assert_eq!(copy.property("rejectionReason"), "Unacceptable");
        assert_eq!(copy.body, "hello");
        host.until(LONG, "three outcomes", || {
            let of = |outcome| {
                let labels = [("subscription", *name), ("outcome", outcome)];
                host.metrics().sum("pumphouse_deliveries_total", &labels)
            };
            [of("ack"), of("defer"), of("reject")] == [1.0, 2.0, 2.0]
        });
        let metrics = host.metrics();
        let seen = |most: &str| {
            let labels = [("subscription", *name), ("le", most)];
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
    let loud: Vec<String> = scene
        .lines()
        .into_iter()
        .filter(|line| line.field("level") == "ERROR")
        .map(|line| line.text)
        .collect();
    assert_eq!(loud, Vec::<String>::new());
}

/// A body is in no line on its way through RocketMQ, however much is logged.
fn a_body_is_in_no_log_at_any_level() {
    const MARK: &str = "body-mark-7d9f3be2c4a1e685";
    let space = Space::new("quiet");
    let host = format!("log.level = \"trace\"\n{HOST}");
    let scene = space.scene(&space.place().namesrv, &host, &work(&WAYS, DEAD));
    let host = scene.start();
    let mut ids = Vec::new();
    for way in WAYS {
        let (mut rejected, mut taken) = (reject(), done());
        rejected["mark"] = MARK.into();
        taken["mark"] = MARK.into();
        let _ = space.send_message(way.name, message(&rejected).of("a"));
        ids.push(space.send_message(way.name, message(&taken).of("b")));
        let copy = &space.copies(Duration::from_secs(60), &format!("dead-{}", way.name), 1)[0];
        assert!(copy.body.contains(MARK), "{copy:#?}");
    }
    host.until(LONG, "the others", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(host.stop(), 0);
    let text = scene.logs()[0].text();
    let found = text.lines().find(|line| line.contains(MARK));
    assert_eq!(found, None);
}
