//! Several brokers, and the name server that tells of them.

use std::time::Duration;

use pumphouse_e2e::rocketmq::{Space, Where, started};
use pumphouse_e2e::{LONG, block_on};
use pumphouse_test_brokers::Setup;

use crate::common::{
    HOST, PAST_LEASES, WAYS, done, saying, send, send_many, set, slowly_done, work,
};

pumphouse_e2e::tests! {
    messages_of_all_brokers_are_handled_and_the_route_is_followed,
    a_name_server_that_is_away_is_not_missed_once_the_route_is_known,
}

/// A topic has queues on two brokers: messages of both are handled. One broker dies: the other's go on. It comes back:
/// so do its messages. A topic of one broker gets queues on the other: those are read too.
fn messages_of_all_brokers_are_handled_and_the_route_is_followed() {
    let mut server = started(Setup::default().two_brokers());
    let space = Space::at(&Where::of(&server), "route");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, "concurrency = 8"));
    let host = scene.start();
    let handled = |what: &str, sent: &[String]| {
        host.until(PAST_LEASES, what, || set(sent).is_subset(&set(&scene.guest_said("done"))));
    };
    // Sixteen queues: the groups `a` to `h` are on both brokers.
    let sent = WAYS.map(|way| send_many(&space, way, &slowly_done(50), 16)).concat();
    handled("messages of both brokers", &sent);
    let by = |broker: usize, number: usize| -> Vec<String> {
        (0..number).map(|_| space.send_by(broker, "normal", &done())).collect()
    };
    handled("messages of each broker", &[by(0, 4), by(1, 4)].concat());

    server.kill_broker(1);
    for _ in 0..3 {
        let id = by(0, 1);
        host.until(Duration::from_secs(15), "the other broker's", || {
            scene.guest_said("done").contains(&id[0])
        });
    }
    block_on(server.restart_broker(1)).unwrap();
    handled("messages of the broker that came back", &by(1, 4));
    host.until(PAST_LEASES, "readiness", || host.readiness() == 200);
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));

    let space = Space::at(space.place(), "joins");
    WAYS.iter().for_each(|way| space.create_on(0, way.name, way.ordered));
    scene.configure(&space.text(&space.place().namesrv, "validate", &work(&WAYS, "")));
    let host = scene.start();
    let first = space.send_by(0, "normal", &done());
    host.until(LONG, "the first broker's", || scene.guest_said("done").contains(&first));
    WAYS.iter().for_each(|way| space.create_on(1, way.name, way.ordered));
    let joined = space.send_by(1, "normal", &done());
    // Groups of which the queue is on the second one, as soon as that is known.
    let groups = WAYS.map(|way| send_many(&space, way, &done(), 8)).concat();
    // The host asks for the route again twice a minute.
    host.until(Duration::from_secs(75), "the broker that joined", || {
        let ended = set(&scene.guest_said("done"));
        ended.contains(&joined) && set(&groups).is_subset(&ended)
    });
    assert_eq!(host.readiness(), 200);
    assert_eq!(host.stop(), 0);
}

/// Brokers don't need the name server once they are known: neither does the host. It says nothing of it, stays ready,
/// and takes the route when it is there again. A host that starts meanwhile waits, and says for what.
fn a_name_server_that_is_away_is_not_missed_once_the_route_is_known() {
    let mut server = started(Setup::default());
    let space = Space::at(&Where::of(&server), "namesrv");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, ""));
    let host = scene.start();
    let before = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&scene.guest_said("done")) == set(&before));
    let lines = scene.lines().len();
    server.kill_namesrv();

    let late = space.scene(&space.place().namesrv, HOST, &work(&WAYS, ""));
    let mut waiting = late.spawn();
    for way in WAYS {
        waiting.until(LONG, "the reason", || {
            let status = waiting.status_of("subscriptions", way.name);
            status["condition"] == "waiting" && status["problem"].is_string()
        });
    }
    assert_eq!(waiting.readiness(), 503);

    // Longer than the host keeps a route without asking.
    let until = std::time::Instant::now() + Duration::from_secs(36);
    while std::time::Instant::now() < until {
        let ids = WAYS.map(|way| send(&space, way, &done()));
        host.until(Duration::from_secs(15), "both without a name server", || {
            set(&ids).is_subset(&set(&scene.guest_said("done")))
        });
        assert_eq!(host.readiness(), 200);
        std::thread::sleep(Duration::from_secs(3));
    }
    let said: Vec<String> = scene.lines()[lines..]
        .iter()
        .filter(|line| ["WARN", "ERROR"].contains(&line.field("level")))
        .map(|line| line.text.clone())
        .collect();
    assert!(said.len() <= 2, "{said:#?}");
    assert_eq!(saying(&scene, "receiving fails; trying again with backoff"), Vec::<String>::new());

    block_on(server.restart_namesrv()).unwrap();
    waiting.until(PAST_LEASES, "readiness of the late one", || waiting.readiness() == 200);
    assert!(waiting.runs());
    assert_eq!(waiting.stop(), 0);
    let after = WAYS.map(|way| send(&space, way, &done()));
    host.until(LONG, "both", || set(&after).is_subset(&set(&scene.guest_said("done"))));
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}
