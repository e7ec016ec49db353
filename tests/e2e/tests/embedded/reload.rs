//! The configuration changes under a running host.

use pumphouse_e2e::{Host, LONG, Scene, Signal, publish_to};

use crate::common::{WORK, done, set, slowly_done};

pumphouse_e2e::tests! {
    fr_31_bad_reloads_change_nothing_and_a_good_one_is_taken,
    a_hang_up_signal_reads_the_configuration_again,
    a_configuration_saved_during_the_start_is_seen,
    fr_10_a_loop_at_a_reload_changes_nothing,
}

fn pump(name: &str) -> String {
    format!(
        "[subscriptions.{name}]\nsource = {{ embedded.queue = \"{name}\" }}\nhandler = \"acme/work\"\nmax_deliveries = 3\ndead_letter = {{ embedded.queue = \"{name}-dead\" }}\n"
    )
}

fn pumps(names: &[&str]) -> String {
    names.iter().fold(WORK.to_owned(), |text, name| text + &pump(name))
}

fn problem(host: &Host) -> String {
    host.status()["configuration_problem"].as_str().unwrap_or_default().to_owned()
}

fn running(host: &Host) -> Vec<String> {
    let status = host.status();
    let all = status["subscriptions"].as_array().into_iter().flatten();
    let running = all.filter(|one| one["condition"] == "running");
    running.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// A bad configuration was saved: both pumps run, and status, metric and log say why it is not in force.
fn is_rejected(scene: &Scene, host: &Host, times: usize, why: &str) {
    host.until(LONG, why, || problem(host).contains(why));
    assert_eq!(running(host), ["one", "two"]);
    assert_eq!(host.metrics().plain("pumphouse_config_rejected"), Some(1.0));
    let said = host.log.saying("configuration on disk rejected; the one in force stays");
    assert_eq!(said.len(), times, "{said:#?}");
    assert!(said[times - 1].field("problem").contains(why), "{said:#?}");
    assert!(said[times - 1].field("level") == "ERROR", "{said:#?}");
    for name in ["one", "two"] {
        // Not by the command: it reads the configuration, which is broken.
        let id = publish_to(&scene.admin(), name, &done());
        host.until(LONG, "a message meanwhile", || scene.guest_said("done").contains(&id));
    }
}

/// FR-30, FR-31: a bad reload changes nothing, and later good ones still work; no message is lost meanwhile.
fn fr_31_bad_reloads_change_nothing_and_a_good_one_is_taken() {
    let scene = Scene::new(&pumps(&["one", "two"]));
    let host = scene.start();
    // What runs over the reloads. The bodies take longer than each of them.
    let long = scene.publish_all("one", &[], &vec![slowly_done(1_500); 30]);
    let mut rejections = 0;
    for (text, why) in [
        (pumps(&["one", "two"]) + "[subscriptions.three\n", "syntax"),
        (
            pumps(&["one", "two"])
                + "[subscriptions.three]\nsource = { pubsub.queue = \"three\" }\nhandler = \"acme/work\"\n",
            "pubsub",
        ),
        (
            pumps(&["one", "two"]) + &pump("three").replace("max_deliveries", "max_delivery"),
            "did you mean `max_deliveries`?",
        ),
    ] {
        scene.configure(&text);
        rejections += 1;
        is_rejected(&scene, &host, rejections, why);
    }
    scene.configure(&pumps(&["one", "two", "three"]));
    host.until(LONG, "three pumps", || running(&host) == ["one", "three", "two"]);
    assert_eq!(problem(&host), "");
    assert_eq!(host.metrics().plain("pumphouse_config_rejected"), Some(0.0));
    let id = scene.publish("three", &done());
    host.until(LONG, "the third pump's", || scene.guest_said("done").contains(&id));
    host.until(LONG, "all messages", || {
        set(&long).is_subset(&set(&scene.guest_said("done"))) && scene.peek("one").is_empty()
    });
    // None of them was disturbed: each was called once.
    assert!(scene.calls().iter().all(|call| call.count == 0));
    assert_eq!(host.stop(), 0);
}

/// What is saved while the host starts, here while it compiles a handler, is not missed.
fn a_configuration_saved_during_the_start_is_seen() {
    let scene = Scene::new(&pumps(&["one"]));
    std::fs::remove_file(scene.path("state/cache")).unwrap();
    let mut host = scene.spawn();
    host.until(LONG, "the start", || !host.log.saying("the broker's store is open").is_empty());
    scene.configure(&pumps(&["one", "two"]));
    host.wait_ready();
    host.until(LONG, "the second pump", || running(&host) == ["one", "two"]);
    assert_eq!(host.log.saying("configuration reloaded").len(), 1);
    assert_eq!(host.stop(), 0);
}

/// SIGHUP reads the file at once; what is gone drains, what changed is drained and begun anew, the rest stays.
fn a_hang_up_signal_reads_the_configuration_again() {
    let scene = Scene::new(&pumps(&["goes", "changes", "stays"]));
    let host = scene.start();
    let ids = scene.publish_all("goes", &[], &vec![slowly_done(1_000); 3]);
    host.until(LONG, "calls", || scene.calls().len() == 3);
    // In one go, and then the signal: no second look at the file is waited for.
    let changed = pumps(&["changes", "stays"])
        .replace("[subscriptions.changes]", "[subscriptions.changes]\nconcurrency = 2");
    scene.configure(&changed);
    host.signal(Signal::HUP);
    host.until(LONG, "the reload", || host.log.saying("configuration reloaded").len() == 1);
    let said = &host.log.saying("configuration reloaded")[0];
    assert_eq!((said.field("stopped"), said.field("restarted")), ("goes", "changes"));
    assert_eq!(said.field("started"), "");
    host.until(LONG, "the others", || running(&host) == ["changes", "stays"]);
    // What was in a handler was finished.
    assert_eq!(set(&scene.guest_said("done")), set(&ids));
    // Once more, without a change.
    host.signal(Signal::HUP);
    let same = "configuration on disk means the same as the one in force";
    host.until(LONG, "the second reading", || !host.log.saying(same).is_empty());
    let id = scene.publish("changes", &done());
    host.until(LONG, "the message", || scene.guest_said("done").contains(&id));
    assert_eq!(host.stop(), 0);
}

/// FR-10 at a reload: a loop is refused with its chain, and the old configuration goes on.
fn fr_10_a_loop_at_a_reload_changes_nothing() {
    let scene = Scene::new(&pumps(&["one", "two"]));
    let host = scene.start();
    let circle = pumps(&["one", "two"])
        .replace("\"one-dead\"", "\"two\"")
        .replace("\"two-dead\"", "\"one\"");
    scene.configure(&circle);
    is_rejected(&scene, &host, 1, "F-5");
    let why = problem(&host);
    assert!(why.contains("one") && why.contains("two"), "{why}");
    assert_eq!(host.stop(), 0);
}
