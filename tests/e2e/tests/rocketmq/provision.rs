//! Topics and consumer groups at the start, and the commands beside `run`.

use pumphouse_e2e::LONG;
use pumphouse_e2e::rocketmq::{QUEUES, Space, java_hash};
use serde_json::{Value, json};

use crate::common::{DEAD, HOST, NORMAL, PAST_LEASES, WAYS, counts_of, done, send, set, work};

pumphouse_e2e::tests! {
    what_is_missing_under_validate_ends_the_start_and_what_create_makes_is_taken,
    a_topic_of_the_other_kind_is_refused_and_not_edited,
    assume_asks_for_nothing_and_waits_for_what_is_missing,
    a_namespace_is_before_every_name,
    publish_reaches_topics_without_a_host,
    publish_refuses_by_name_what_can_not_be_a_property,
    check_says_what_is_in_force_without_a_broker,
}

/// `validate`, the default: what is not there ends the start, all of it by name. `create` makes it, each topic of its
/// kind; the next start under `validate` takes it.
fn what_is_missing_under_validate_ends_the_start_and_what_create_makes_is_taken() {
    let space = Space::new("missing");
    let namesrv = &space.place().namesrv;
    let text = work(&WAYS, DEAD);
    let scene = space.scene(namesrv, HOST, "");
    scene.configure(&space.text(namesrv, "validate", &text));
    let ran = scene.command("run", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains(&space.name("normal")), "{ran:#?}");
    assert!(!space.has_topic("normal") && !space.has_topic("dead-normal"), "nothing was made");

    scene.configure(&space.text(namesrv, "create", &text));
    assert_eq!(scene.start().stop(), 0);
    for topic in ["normal", "fifo", "dead-normal", "dead-fifo"] {
        assert!(space.has_topic(topic), "{topic}");
        let kind = if topic.ends_with("fifo") { "FIFO" } else { "NORMAL" };
        let settings = space.topic(topic);
        assert!(settings.contains(&format!("\"message.type\":\"{kind}\"")), "{topic}: {settings}");
        assert!(settings.contains(&format!("\"writeQueueNums\":{QUEUES}")), "{topic}: {settings}");
    }

    scene.configure(&space.text(namesrv, "validate", &text));
    let host = scene.start();
    let ids = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// A topic that is there and of the other kind: the start ends, and says what differs; the topic stays as it was,
/// under `create` too.
fn a_topic_of_the_other_kind_is_refused_and_not_edited() {
    let space = Space::new("other");
    space.create("normal", true);
    space.create("fifo", false);
    let before = ["normal", "fifo"].map(|topic| space.topic(topic));
    let namesrv = &space.place().namesrv;
    for provision in ["create", "validate"] {
        for way in WAYS {
            let scene = space.scene(namesrv, HOST, "");
            scene.configure(&space.text(namesrv, provision, &work(&[way], "")));
            let ran = scene.command("run", &[]);
            assert_eq!(ran.code, 1, "{provision}: {ran:#?}");
            let text = ran.stderr.to_lowercase();
            assert!(text.contains(&space.name(way.name)), "{ran:#?}");
            assert!(text.contains("fifo") && text.contains("normal"), "{ran:#?}");
        }
    }
    assert_eq!(["normal", "fifo"].map(|topic| space.topic(topic)), before);
}

/// `assume`: nothing is asked for at the start. What is not there is waited for, with the reason in the status.
fn assume_asks_for_nothing_and_waits_for_what_is_missing() {
    let space = Space::new("assume");
    let namesrv = &space.place().namesrv;
    let scene = space.scene(namesrv, HOST, "");
    scene.configure(&space.text(namesrv, "assume", &work(&WAYS, "")));
    let mut host = scene.spawn();
    for way in WAYS {
        host.until(LONG, "the reason", || {
            let status = host.status_of("subscriptions", way.name);
            status["condition"] == "waiting"
                && status["problem"]
                    .as_str()
                    .is_some_and(|text| text.contains(&space.name(way.name)))
        });
    }
    assert!(host.runs());
    assert!(!space.has_topic("normal"), "nothing was made");
    WAYS.iter().for_each(|way| space.create(way.name, way.ordered));
    let ids = WAYS.map(|way| send(&space, way, &done()));
    host.until(PAST_LEASES, "both", || set(&scene.guest_said("done")) == set(&ids));
    host.until(LONG, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// A namespace is before the names of topics and groups at the broker, and nowhere else: a copy names the topic as the
/// configuration does.
fn a_namespace_is_before_every_name() {
    let space = Space::new("within");
    let namespace = space.name("space");
    let inner = Space::within(&space, &namespace);
    let rest = "max_deliveries = 2\nretry = { backoff = \"1s\", max_backoff = \"1s\" }\ndead_letter = { rocketmq.topic = \"dead-{way}\" }";
    let text = work(&WAYS, rest).replace("{space}-", "");
    let text = space.text(&space.place().namesrv, "create", &text).replacen(
        "[rocketmq]\n",
        &format!("[rocketmq]\nnamespace = \"{namespace}\"\n"),
        1,
    );
    let scene = space.scene(&space.place().namesrv, HOST, "");
    scene.configure(&text);
    let host = scene.start();
    for way in WAYS {
        let id = send(&inner, way, &json!({ "do": "defer" }));
        let copy = &inner.copies(LONG, &format!("dead-{}", way.name), 1)[0];
        assert_eq!(copy.property("originalMessageId"), id);
        assert_eq!(copy.property("originalTopic"), way.name);
        assert_eq!(counts_of(&scene, &id), [0, 1]);
    }
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| inner.assert_settled(way.name, way.ordered));
}

/// `pumphouse publish` reaches a topic without a host, with headers, keys, a tag and a group.
fn publish_reaches_topics_without_a_host() {
    let space = Space::new("publish");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, ""));
    WAYS.iter().for_each(|way| space.create(way.name, way.ordered));
    for way in WAYS {
        let rest = [
            way.name,
            "--body",
            "hello",
            "--key",
            "customer-7",
            "--header",
            "type=greeting",
            "--header",
            "KEYS=A-1 A-2",
            "--header",
            "TAGS=red",
        ];
        let ran = scene.command("publish", &rest).ok();
        assert!(ran.stdout.starts_with("published 1 to rocketmq"), "{ran:#?}");
        let message = &space.copies(LONG, way.name, 1)[0];
        assert_eq!((message.body.as_str(), message.group.as_str()), ("hello", "customer-7"));
        assert_eq!(message.property("type"), "greeting");
        assert_eq!((message.property("KEYS"), message.property("TAGS")), ("A-1 A-2", "red"));
        if way.ordered {
            assert_eq!(message.queue, java_hash("customer-7").unsigned_abs() % QUEUES);
        }
    }
    // The ids that are printed are those that a handler sees.
    let ids = WAYS.map(|way| scene.publish_keyed(way.name, &["--key", "customer-7"], &done()));
    let host = scene.start();
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&ids));
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// What RocketMQ would overwrite, or could not tell from its own separators, is refused by its name, and nothing is
/// sent.
fn publish_refuses_by_name_what_can_not_be_a_property() {
    let space = Space::new("refused");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&[NORMAL], ""));
    space.create("normal", false);
    for (name, value) in
        [("POP_CK", "0 1"), ("UNIQ_KEY", "mine"), ("WAIT", "x"), ("odd", "a\u{2}b"), ("empty", "")]
    {
        let header = format!("{name}={value}");
        let ran = scene.command("publish", &["normal", "--body", "hello", "--header", &header]);
        assert_ne!(ran.code, 0, "{name}: {ran:#?}");
        assert!(ran.stderr.contains(name), "{name}: {ran:#?}");
    }
    assert_eq!(space.stored("normal"), []);
}

/// `check` asks nobody: what it prints is the same without a broker. It says what a deferral without a delay costs on
/// a normal topic, and what order is kept. A native policy is refused: RocketMQ has none by POP.
fn check_says_what_is_in_force_without_a_broker() {
    let space = Space::new("check");
    let scene = space.scene("127.0.0.1:1", HOST, &work(&WAYS, DEAD));
    let ran = scene.command("check", &[]).ok();
    for name in ["rocketmq", &space.name("normal"), &space.name("fifo-work"), "fifo"] {
        assert!(ran.stdout.contains(name), "{name}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("comes back after 2s to 5s"), "{}", ran.stdout);
    assert!(ran.stdout.contains("holds back its whole queue"), "{}", ran.stdout);
    let ran = scene.command("check", &["--json"]).ok();
    let checked: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |name: &str| {
        let all = checked["subscriptions"].as_array().unwrap();
        all.iter().find(|one| one["subscription"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(
        (of("normal")["lease_ms"].clone(), of("fifo")["lease_ms"].clone()),
        (30_000.into(), 30_000.into())
    );

    let native = "native = { max_delivery_attempts = 5, dead_letter.topic = \"x\" }";
    scene.configure(&space.text("127.0.0.1:1", "create", &work(&[NORMAL], native)));
    let ran = scene.command("check", &[]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(ran.stdout.contains("native") || ran.stderr.contains("native"), "{ran:#?}");
}
