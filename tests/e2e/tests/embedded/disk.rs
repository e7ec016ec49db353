//! The disk under the durable broker is full, or can't be written.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use pumphouse_e2e::{LONG, Room, Scene};
use serde_json::json;

use crate::common::{sequence, set, slowly_done, work};

pumphouse_e2e::tests! {
    a_full_disk_refuses_publishing_and_loses_nothing,
    a_read_only_disk_is_refused_by_name,
}

/// A full disk refuses publishes with a clear error and loses nothing, over a SIGKILL too; settling goes on.
fn a_full_disk_refuses_publishing_and_loses_nothing() {
    let scene = Scene::new(&work("retry = { backoff = \"500ms\", max_backoff = \"2s\" }"));
    let room = Room::at(&scene.path("state"), "40m");
    let compiled = std::fs::read_link(scene.path("state/cache")).unwrap();
    symlink(compiled, room.inside().join("cache")).unwrap();
    let mut host = scene.spawn_through(&room.enter());
    host.wait_ready();
    let later = sequence(&[json!({ "do": "defer", "ms": 3_000 }), slowly_done(10)]);
    let mut published = scene.publish_all("work", &[], &vec![later; 20]);

    room.fill();
    let large = "x".repeat(400_000);
    let body = json!({ "do": "log", "text": "done", "then": "ack", "filling": large });
    let began = Instant::now();
    let refused = loop {
        let ran = scene.try_publish("work", &[], std::slice::from_ref(&body));
        if ran.code != 0 {
            break ran;
        }
        let id: serde_json::Value = serde_json::from_str(ran.stdout.trim()).unwrap();
        published.push(id["id"].as_str().unwrap().to_owned());
        assert!(began.elapsed() < LONG, "a full disk takes everything");
    };
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is full"), "{refused:#?}");
    assert!(refused.stderr.contains("nothing that was confirmed is lost"), "{refused:#?}");
    let all = set(&published);
    host.until(LONG, "what was there goes on", || set(&scene.guest_said("done")) == all);

    // What is killed and started again on a full disk has lost nothing, and refuses as before.
    host.kill();
    let mut host = scene.spawn_through(&room.enter());
    host.wait_ready();
    let refused = scene.try_publish("work", &[], &vec![body; 40]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    let confirmed = refused.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    published.extend(
        confirmed.filter_map(|line: serde_json::Value| line["id"].as_str().map(str::to_owned)),
    );
    room.empty();
    let mut last = None;
    host.until(LONG, "room is noticed", || {
        let ran = scene.try_publish("work", &[], &[slowly_done(1)]);
        last = serde_json::from_str::<serde_json::Value>(ran.stdout.trim()).ok();
        ran.code == 0
    });
    published.push(last.unwrap()["id"].as_str().unwrap().to_owned());
    let all = set(&published);
    host.until(Duration::from_secs(60), "everything handled", || {
        let done = set(&scene.guest_said("done"));
        all.is_subset(&done) && scene.peek("work").is_empty()
    });
    assert_eq!(host.stop(), 0);
}

/// A disk that can't be written ends the start, by name.
fn a_read_only_disk_is_refused_by_name() {
    let scene = Scene::new(&work(""));
    let room = Room::at(&scene.path("state"), "32m");
    let mut host = scene.spawn_through(&room.enter());
    host.wait_ready();
    let id = scene.publish("work", &json!({ "do": "defer", "ms": 60_000 }));
    host.until(LONG, "the deferral", || !scene.calls().is_empty());
    assert_eq!(host.stop(), 0);
    room.seal();
    let mut host = scene.spawn_through(&room.enter());
    assert_eq!(host.wait_exit(LONG), 1);
    let text = host.log.text();
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(text.contains(scene.path("state").to_str().unwrap()), "{text}");
    assert!(!id.is_empty());
}
