//! A handler's file is replaced, in every way in which files are replaced.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use pumphouse_e2e::{
    Host, LONG, Line, Scene, assembled, component_text, digest, guest, publish_to,
};
use serde_json::{Value, json};

use crate::common::set;

pumphouse_e2e::tests! {
    fr_25_switched_links_are_seen_ten_times,
    fr_26_every_way_of_saving_is_seen_twice,
    fr_26_a_configuration_edited_in_place_is_seen_twice,
    fr_27_a_swap_under_load_loses_and_mixes_nothing,
    fr_27_a_half_written_component_waits_until_it_is_whole,
    fr_28_a_misfit_ends_the_start_by_name,
    fr_28_a_misfit_at_a_swap_changes_nothing,
}

const DEPLOYED: &str = r#"
[tenants.acme.handlers.versions]
component = "versions.wasm"
grants.logging = true
"#;

fn versions(rest: &str) -> String {
    format!(
        "{DEPLOYED}\n[subscriptions.versions]\nsource = {{ embedded.queue = \"versions\" }}\nhandler = \"acme/versions\"\n{rest}\n"
    )
}

/// The two versions; each says in the log which one it is.
fn component(version: usize) -> std::path::PathBuf {
    guest(if version % 2 == 1 { "version_one" } else { "version_two" })
}

fn in_use(host: &Host) -> String {
    host.status_of("handlers", "acme/versions")["digest"].as_str().unwrap_or_default().to_owned()
}

fn until_in_use(host: &Host, version: usize) {
    let wanted = digest(&component(version));
    host.until(LONG, "the new version", || in_use(host) == wanted);
}

/// Publishes one message and tells which version handled it.
fn handled_by(scene: &Scene, host: &Host) -> u8 {
    // Not by the command: it reads the configuration, whose component may be away just now.
    let id = publish_to(&scene.admin(), "versions", &json!("any"));
    let suffix = format!(" id={id}");
    host.until_some(LONG, "the message", || {
        let lines = host.log.lines();
        let line =
            lines.iter().find(|line| line.is_guests() && line.field("text").ends_with(&suffix));
        line.map(version_of)
    })
}

fn version_of(line: &Line) -> u8 {
    match line.field("text").split(' ').next() {
        Some("version=1") => 1,
        Some("version=2") => 2,
        _ => panic!("{line:?}"),
    }
}

/// FR-25: links through a `..data` link that is switched, as Kubernetes does, with the configuration behind it too.
/// One reload for each switch.
fn fr_25_switched_links_are_seen_ten_times() {
    let scene = Scene::new(&versions(""));
    let mount = scene.path("mount");
    fs::create_dir(&mount).unwrap();
    let fill = |round: usize| {
        let data = mount.join(format!("..data-{round}"));
        fs::create_dir(&data).unwrap();
        fs::copy(component(round), data.join("versions.wasm")).unwrap();
        let text = scene.text(&versions(&format!("concurrency = {}", round + 1)));
        fs::write(data.join("pumphouse.toml"), text).unwrap();
        symlink(format!("..data-{round}"), mount.join("..data-new")).unwrap();
        fs::rename(mount.join("..data-new"), mount.join("..data")).unwrap();
        if round > 0 {
            fs::remove_dir_all(mount.join(format!("..data-{}", round - 1))).unwrap();
        }
    };
    fill(0);
    for name in ["versions.wasm", "pumphouse.toml"] {
        symlink(Path::new("..data").join(name), mount.join(name)).unwrap();
    }
    let config = mount.join("pumphouse.toml");
    let mut host = scene.spawn_as(&scene.pumphouse(&["run".as_ref(), config.as_os_str()]));
    host.wait_ready();
    for round in 1..=10 {
        fill(round);
        until_in_use(&host, round);
        let reloads = || host.log.saying("configuration reloaded").len();
        host.until(LONG, "the configuration", || reloads() == round);
    }
    assert_eq!(host.log.saying("handler swapped").len(), 10);
    assert_eq!(host.log.saying("configuration reloaded").len(), 10);
    assert!(host.log.saying("new component refused, the version in use goes on").is_empty());
    assert_eq!(host.stop(), 0);
}

type Save = fn(&Path, &[u8], &dyn Fn());

/// FR-26: the ways in which editors and copying save, each twice. What happens in the gap is the third argument.
fn fr_26_every_way_of_saving_is_seen_twice() {
    let scene = Scene::new(&versions(""));
    let target = scene.path("versions.wasm");
    fs::copy(component(0), &target).unwrap();
    let host = scene.start();
    let renamed_over: Save = |path, bytes, _| {
        fs::write(path.with_extension("tmp"), bytes).unwrap();
        fs::rename(path.with_extension("tmp"), path).unwrap();
    };
    let renamed_away: Save = |path, bytes, _| {
        fs::rename(path, path.with_extension("bak")).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let written_over: Save = |path, bytes, _| fs::write(path, bytes).unwrap();
    let deleted_first: Save = |path, bytes, gap| {
        fs::remove_file(path).unwrap();
        gap();
        fs::write(path, bytes).unwrap();
    };
    let mut round = 0;
    for save in [renamed_over, renamed_away, written_over, deleted_first] {
        for _ in 0..2 {
            round += 1;
            let before = if round % 2 == 1 { 2 } else { 1 };
            save(&target, &fs::read(component(round)).unwrap(), &|| {
                std::thread::sleep(Duration::from_secs(2));
                assert_eq!(handled_by(&scene, &host), before, "during the gap the old one serves");
            });
            until_in_use(&host, round);
        }
    }
    assert_eq!(host.log.saying("handler swapped").len(), 8);
    assert_eq!(handled_by(&scene, &host), 2);
    assert_eq!(host.stop(), 0);
}

/// FR-26: `sed -i` on the configuration, twice.
fn fr_26_a_configuration_edited_in_place_is_seen_twice() {
    let scene = Scene::new(&versions("concurrency = 1"));
    fs::copy(component(1), scene.path("versions.wasm")).unwrap();
    let host = scene.start();
    for round in 1..=2 {
        let edit = format!("s/^concurrency = {round}$/concurrency = {}/", round + 1);
        let mut sed = std::process::Command::new("sed");
        let _ = pumphouse_e2e::run(sed.args(["-i", &edit]).arg(scene.config()), "").ok();
        host.until(LONG, "the edit", || host.log.saying("configuration reloaded").len() == round);
    }
    assert_eq!(host.stop(), 0);
}

/// FR-27 (a): under load every call begun after the switch is the new version's; no message is lost, fails, or is
/// handled by both.
fn fr_27_a_swap_under_load_loses_and_mixes_nothing() {
    let scene = Scene::new(&versions("dispatch = \"sequential\""));
    fs::copy(component(1), scene.path("versions.wasm")).unwrap();
    let host = scene.start();
    let published = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let lots = (0..12).map(|_| scene.publish_all("versions", &[], &vec![json!("any"); 50]));
            lots.flatten().collect::<Vec<String>>()
        });
        host.until(LONG, "some calls", || guest_lines(&host).len() > 30);
        scene.deploy("versions.wasm", &component(2));
        until_in_use(&host, 2);
        publishing.join().unwrap()
    });
    let last = scene.publish_all("versions", &[], &vec![json!("any"); 5]);
    let all: Vec<String> = published.into_iter().chain(last).collect();
    host.until(LONG, "all handled", || guest_lines(&host).len() >= all.len());

    let lines = guest_lines(&host);
    let ids: Vec<String> = lines.iter().map(|line| line.field("message_id").to_owned()).collect();
    assert_eq!(ids.len(), all.len(), "each is handled once");
    assert_eq!(set(&ids), set(&all));
    let versions: Vec<u8> = lines.iter().map(version_of).collect();
    assert!(versions.is_sorted(), "one after the other: {versions:?}");
    assert_eq!((versions[0], versions[versions.len() - 1]), (1, 2));
    let metrics = host.metrics();
    let first = [("outcome", "ack"), ("redelivered", "false")];
    assert_eq!(metrics.sum("pumphouse_deliveries_total", &first), all.len() as f64);
    assert_eq!(metrics.sum("pumphouse_faults_total", &[]), 0.0);
    assert_eq!(host.stop(), 0);
}

fn guest_lines(host: &Host) -> Vec<Line> {
    host.log.lines().into_iter().filter(Line::is_guests).collect()
}

/// FR-27 (b): a file that grows for seconds is taken when it is whole; until then the old version serves, no message
/// loses budget, and there is at most one warning.
fn fr_27_a_half_written_component_waits_until_it_is_whole() {
    let scene = Scene::new(&versions("max_deliveries = 2\nretry = { backoff = \"100ms\" }"));
    let target = scene.path("versions.wasm");
    fs::copy(component(1), &target).unwrap();
    let host = scene.start();
    let whole = fs::read(component(2)).unwrap();
    let mut file = fs::File::create(&target).unwrap();
    for (number, piece) in whole.chunks(whole.len().div_ceil(20)).enumerate() {
        file.write_all(piece).unwrap();
        file.sync_all().unwrap();
        // Now and then it stands still for longer than two looks.
        let pause = if number == 9 { 2_500 } else { 150 };
        std::thread::sleep(Duration::from_millis(pause));
        if number % 5 == 4 && number < 19 {
            assert_eq!(handled_by(&scene, &host), 1);
        }
    }
    drop(file);
    until_in_use(&host, 2);
    assert_eq!(handled_by(&scene, &host), 2);
    let warnings = host.log.saying("new component refused, the version in use goes on");
    assert!(warnings.len() <= 1, "{warnings:#?}");
    let metrics = host.metrics();
    let again = [("redelivered", "true")];
    assert_eq!(metrics.sum("pumphouse_deliveries_total", &again), 0.0);
    assert_eq!(metrics.sum("pumphouse_handler_update_rejected", &[]), 0.0);
    assert_eq!(host.status_of("handlers", "acme/versions")["problem"], Value::Null);
    assert_eq!(host.stop(), 0);
}

/// What does not fit, with what its refusal has to name.
const MISFITS: [(&str, &[&str]); 4] = [
    ("misfits/core-module.wat", &["core module", "wasm32-wasip2"]),
    ("misfits/no-export.wat", &["pumphouse:handler/incoming-handler@1.0.0"]),
    ("misfits/version-2.wat", &["incoming-handler@2.0.0", "@1.0.0"]),
    ("handlers/import-unknown.wat", &["acme:payments/charge@1.0.0"]),
];

/// FR-28: at the start it is refused by name, with an exit code.
fn fr_28_a_misfit_ends_the_start_by_name() {
    let scene = Scene::new(&versions(""));
    for (name, parts) in MISFITS {
        fs::write(scene.path("versions.wasm"), assembled(&component_text(name))).unwrap();
        let ran = scene.command("run", &[]);
        assert_eq!(ran.code, 1, "{name}: {ran:#?}");
        for part in parts.iter().chain(&["acme/versions", "versions.wasm"]) {
            assert!(ran.stderr.contains(part), "{part:?} of {name} in {ran:#?}");
        }
    }
}

/// FR-28: at a swap the version in use goes on, and status, metric and log say what is wrong. A compatible minor
/// version is taken.
fn fr_28_a_misfit_at_a_swap_changes_nothing() {
    let scene = Scene::new(&versions(""));
    fs::copy(component(1), scene.path("versions.wasm")).unwrap();
    let host = scene.start();
    let problem = || {
        let status = host.status_of("handlers", "acme/versions");
        status["problem"].as_str().unwrap_or_default().to_owned()
    };
    for (round, (name, parts)) in MISFITS.iter().enumerate() {
        fs::write(scene.path("new"), assembled(&component_text(name))).unwrap();
        scene.deploy("versions.wasm", &scene.path("new"));
        host.until(LONG, "the refusal", || parts.iter().all(|part| problem().contains(part)));
        assert_eq!(handled_by(&scene, &host), 1);
        assert_eq!(host.metrics().sum("pumphouse_handler_update_rejected", &[]), 1.0);
        // Between two of them a good one, so that each is news.
        scene.deploy("versions.wasm", &component(1));
        host.until(LONG, "the good one", || problem().is_empty());
        let warnings = host.log.saying("new component refused, the version in use goes on");
        assert_eq!(warnings.len(), round + 1, "{warnings:#?}");
    }
    let minor = component_text("handlers/ack.wat").replace("@1.0.0", "@1.7.2");
    fs::write(scene.path("new"), assembled(&minor)).unwrap();
    let wanted = digest(&scene.path("new"));
    scene.deploy("versions.wasm", &scene.path("new"));
    host.until(LONG, "a compatible minor version", || in_use(&host) == wanted);
    scene.publish("versions", &json!("any"));
    host.until(LONG, "an empty queue", || scene.peek("versions").is_empty());
    assert_eq!(host.metrics().sum("pumphouse_handler_update_rejected", &[]), 0.0);
    assert_eq!(host.stop(), 0);
}
