//! What is refused before anything is started, and what `check` says.

use pumphouse_e2e::{Ran, Scene};
use serde_json::Value;

use crate::common::{WORK, work};

pumphouse_e2e::tests! {
    fr_10_a_loop_of_destinations_ends_the_start,
    fr_30_unknown_keys_end_the_start_at_their_line,
    check_says_what_is_in_force_and_what_is_unwise,
}

fn subscription(name: &str, queue: &str, dead: &str) -> String {
    format!(
        "[subscriptions.{name}]\nsource = {{ embedded.queue = \"{queue}\" }}\nhandler = \"acme/work\"\ndead_letter = {{ embedded.queue = \"{dead}\" }}\n"
    )
}

/// Refused alike by `check` and by `run`; what `run` said.
fn refused(scene: &Scene, text: &str) -> Ran {
    scene.configure(text);
    let check = scene.command("check", &[]);
    assert_eq!(check.code, 78, "{check:#?}");
    let run = scene.command("run", &[]);
    assert_eq!(run.code, 78, "{run:#?}");
    // Nothing was started, so nothing was made.
    assert!(!scene.path("state/host.lock").exists());
    run
}

/// FR-10: four loops are refused at the start, the chain named.
fn fr_10_a_loop_of_destinations_ends_the_start() {
    let scene = Scene::new(&work(""));
    let own = subscription("self", "a", "a");
    let two = subscription("first", "a", "b") + &subscription("second", "b", "a");
    let three = subscription("first", "a", "b")
        + &subscription("second", "b", "c")
        + &subscription("third", "c", "a");
    // By another spelling of the keys, and over the other destination.
    let spelled = subscription("first", "a", "b")
        + "[subscriptions.second]\nhandler = \"acme/work\"\nsource.embedded.queue = \"b\"\n[subscriptions.second.invalid_message.embedded]\nqueue = 'a'\n";
    for (text, names) in [
        (own, &["self"][..]),
        (two, &["first", "second"]),
        (three, &["first", "second", "third"]),
        (spelled, &["first", "second"]),
    ] {
        let ran = refused(&scene, &(WORK.to_owned() + &text));
        assert!(ran.stderr.contains("F-5"), "{ran:#?}");
        for name in names {
            assert!(ran.stderr.contains(name), "{name} in {ran:#?}");
        }
    }
}

/// FR-30: six mistakes, each refused with file, line, key and, where one is near, a suggestion.
fn fr_30_unknown_keys_end_the_start_at_their_line() {
    let scene = Scene::new(&work(""));
    let rest = "max_deliveries = 3\n";
    for (mistake, key, hint) in [
        ("[tennants.acme]\n", "tennants", "did you mean `tenants`?"),
        (
            "[subscriptions.work]\nmax_delivery = 3\n",
            "subscriptions.work.max_delivery",
            "did you mean `max_deliveries`?",
        ),
        (
            "[tenants.acme.handlers.other]\ngrants.loging = true\n",
            "tenants.acme.handlers.other.grants.loging",
            "did you mean `logging`?",
        ),
        ("[[subscriptions]]\n", "subscriptions", ""),
        (
            "[subscriptions.work]\nsource.embedded.topic = \"t\"\n",
            "subscriptions.work.source.embedded.topic",
            "",
        ),
        (
            "[subscriptions.work]\nmax_deliveries = 1\nmax_deliveries = 2\n",
            "subscriptions.work.max_deliveries",
            "",
        ),
    ] {
        let text = format!(
            "{WORK}\n{mistake}{}",
            if mistake.contains("[subscriptions.work]") { "" } else { rest }
        );
        let ran = refused(&scene, &text);
        let line = 1 + scene
            .text(&text)
            .lines()
            .position(|line| line == mistake.lines().last().unwrap())
            .unwrap();
        let place = format!("pumphouse.toml:{line}:");
        assert!(ran.stderr.contains(&place), "{place} in {ran:#?}");
        assert!(ran.stderr.contains(key), "{key} in {ran:#?}");
        assert!(ran.stderr.contains(hint), "{hint} in {ran:#?}");
    }
}

/// S-1, F-4, F-5, F-6: `check` prints what is in force and every warning, and ends with 0; for programs too.
fn check_says_what_is_in_force_and_what_is_unwise() {
    let text = work("max_deliveries = 3\nretry = { backoff = \"0s\" }\nordering = \"key\"");
    let scene = Scene::new(&(text + &subscription("endless", "e", "e-dead")));
    let said = scene.command("check", &[]).ok().stdout;
    for part in
        ["F-4", "F-5", "F-6", "endless", "0 errors, 3 warnings", "work", "lease", "at-least-once"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    let json: Value =
        serde_json::from_str(&scene.command("check", &["--json"]).ok().stdout).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 3, "{json:#}");
    let subscriptions = json["subscriptions"].as_array().unwrap();
    let work = subscriptions.iter().find(|one| one["subscription"] == "work").unwrap();
    // 1 s of waiting, a deadline of 2 s, 15 s of settling, 2 s for clocks.
    assert_eq!(work["lease_ms"], 20_000, "{work:#}");
    // `check` starts nothing and makes nothing.
    assert!(!scene.path("state/host.lock").exists());
}
