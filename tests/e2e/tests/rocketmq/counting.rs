//! Budgets, windows and delays.

use std::time::Duration;

use pumphouse_e2e::rocketmq::{Space, delay_of, proxy};
use pumphouse_e2e::{LONG, Scene};
use pumphouse_test_brokers::remoting::code;
use serde_json::json;

use crate::common::{
    DEAD, HOST, PAST_LEASES, WAYS, WORK, about, counts, counts_of, done, said, send, send_many,
    send_to, set, subscription, work,
};

pumphouse_e2e::tests! {
    c_1_counts_go_on_over_restarts_and_competing_hosts,
    c_1_hosts_that_compete_share_a_group_and_its_counts,
    fr_02_a_counter_that_starts_at_nothing_is_a_first_delivery,
    fr_03_the_budget_is_one_number,
    fr_32_a_delay_beyond_the_brokers_limit_is_shortened,
    s_3_the_window_ends_what_the_budget_does_not,
}

/// C-1: the broker keeps the count. It goes on over a restart of the host, a killed host, and in another host that
/// reads the same group.
fn c_1_counts_go_on_over_restarts_and_competing_hosts() {
    let space = Space::new("c1");
    let rest = "retry = { backoff = \"1s\", max_backoff = \"1s\", jitter = \"none\" }";
    let make = || space.scene(&space.place().namesrv, HOST, &work(&WAYS, rest));
    let (scene, other) = (make(), make());
    let host = scene.start();
    let ids = WAYS.map(|way| send(&space, way, &json!({ "do": "defer" })));
    let seen = |most: u32| {
        let all = [scene.calls(), other.calls()].concat();
        ids.iter().all(|id| all.iter().any(|call| call.id == *id && call.count >= most))
    };
    host.until(LONG, "some deferrals", || seen(1));
    assert_eq!(host.stop(), 0);
    let host = scene.start();
    host.until(LONG, "more of them", || seen(3));
    let second = other.start();
    host.until(LONG, "more of them, by two hosts", || seen(6));
    assert_eq!(host.stop(), 0);
    second.until(LONG, "more of them, by the other host", || seen(9));
    assert_eq!(second.stop(), 0);
    let mut calls = [scene.calls(), other.calls()].concat();
    calls.sort_by_key(|call| call.at);
    for id in &ids {
        let counts: Vec<u32> =
            calls.iter().filter(|call| call.id == *id).map(|call| call.count).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{id} was called with the counts {counts:?}");
        assert_eq!(counts[0], 0);
    }
    assert!(!other.calls().is_empty(), "the other host had its share");
}

/// C-1: two hosts read the same groups at once. Each message is deferred twice and then handled, wherever it comes: its
/// counts rise over both of them, it is handled once, and none is lost.
fn c_1_hosts_that_compete_share_a_group_and_its_counts() {
    let space = Space::new("compete");
    let rest =
        "concurrency = 4\nretry = { backoff = \"1s\", max_backoff = \"1s\", jitter = \"none\" }";
    let make = || space.scene(&space.place().namesrv, HOST, &work(&WAYS, rest));
    let scenes = [make(), make()];
    let hosts = scenes.each_ref().map(Scene::start);
    let body = json!({ "do": "sequence", "steps": [{ "do": "defer" }, { "do": "defer" }, done()] });
    let ids = WAYS.map(|way| send_many(&space, way, &body, 10)).concat();
    let handled = || scenes.each_ref().map(|scene| scene.guest_said("done")).concat();
    hosts[0].until(PAST_LEASES, "all of them", || set(&ids) == set(&handled()));
    hosts.into_iter().for_each(|host| assert_eq!(host.stop(), 0));
    assert_eq!(handled().len(), ids.len(), "each of them once");
    let shares = scenes.each_ref().map(Scene::calls);
    assert!(shares.iter().all(|calls| !calls.is_empty()), "both had a share");
    let mut calls = shares.concat();
    calls.sort_by_key(|call| call.at);
    for id in &ids {
        let ours = calls.iter().filter(|call| call.id == *id);
        assert_eq!(ours.map(|call| call.count).collect::<Vec<_>>(), [0, 1, 2], "{id}");
    }
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-02, C-2, C-6: RocketMQ counts from 0. The first delivery sees 0, also where the message brings a number of its
/// own or the sender says that it was consumed before.
fn fr_02_a_counter_that_starts_at_nothing_is_a_first_delivery() {
    let space = Space::new("fr02");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, ""));
    let host = scene.start();
    let body = json!({ "do": "report", "then": done() });
    let ids = WAYS.map(|way| {
        let message = pumphouse_e2e::rocketmq::message(&body)
            .of("a")
            .with("deliveryCount", "7")
            .with("ApproximateReceiveCount", "9");
        space.send_message(way.name, message)
    });
    for id in &ids {
        host.until(LONG, "its end", || scene.guest_said("done").contains(id));
        assert_eq!(counts_of(&scene, id), [0]);
    }
    assert_eq!(host.stop(), 0);
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-03, C-4: budgets 1, 2 and 3 are as many calls at most, and here, where no receive is lost, exactly, on both
/// kinds of topic. C-5: so is 0, which is one call.
fn fr_03_the_budget_is_one_number() {
    let space = Space::new("fr03");
    let all: Vec<_> = (0..=3)
        .flat_map(|budget| WAYS.map(|way| (budget, way)))
        .map(|(budget, way)| {
            let name = format!("{}-{budget}", way.name);
            let rest = format!(
                "max_deliveries = {budget}\nretry = {{ backoff = \"1s\", max_backoff = \"1s\" }}\n{DEAD}"
            );
            (budget, way, name.clone(), subscription(&name, way, &rest))
        })
        .collect();
    let text: String = all.iter().map(|(.., text)| text.as_str()).collect();
    let scene = space.scene(&space.place().namesrv, HOST, &(WORK.to_owned() + &text));
    let host = scene.start();
    let defer = json!({ "do": "defer" });
    let ids: Vec<String> =
        all.iter().map(|(_, way, name, _)| send_to(&space, name, *way, &defer)).collect();
    let copies: Vec<_> = WAYS
        .iter()
        .flat_map(|way| space.copies(PAST_LEASES, &format!("dead-{}", way.name), 4))
        .collect();
    host.until(LONG, "all removed", || {
        host.metrics().sum("pumphouse_dead_letter_messages_total", &[]) == 8.0
    });
    assert_eq!(host.stop(), 0);
    let counts = counts(&scene);
    for (id, (budget, way, name, _)) in ids.iter().zip(&all) {
        let calls = u32::max(*budget, 1);
        let wanted: Vec<u32> = (0..calls).collect();
        assert_eq!(counts[id], wanted, "{name}");
        let copy = copies.iter().find(|copy| copy.property("originalMessageId") == id).unwrap();
        assert_eq!(copy.property("deliveryCount"), calls.to_string());
        assert_eq!(copy.property("originalTopic"), space.name(name), "and never the retry topic");
        space.assert_settled(name, way.ordered);
    }
}

/// FR-32, S-2: three days are what the broker holds a message back. A longer delay is shortened to that, counted, and
/// logged once; the request is sent once and not refused.
fn fr_32_a_delay_beyond_the_brokers_limit_is_shortened() {
    const DAY: u64 = 24 * 60 * 60;
    let space = Space::new("fr32");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let longer = json!({ "do": "defer", "ms": 4 * DAY * 1_000 });
    let longest = json!({ "do": "defer", "ms": 3 * DAY * 1_000 });
    for way in WAYS {
        for (group, body) in [("a", &longer), ("b", &longer), ("c", &longest)] {
            let message = pumphouse_e2e::rocketmq::message(body).of(group);
            let _ = space.send_message(way.name, message);
        }
    }
    let asked = |name: &str| -> Vec<u64> {
        let ours = about(&space, name);
        let requests = proxy.requests().into_iter();
        let changes = requests.filter(|one| one.code == code::CHANGE_MESSAGE_INVISIBLETIME);
        changes.filter(|one| ours(one)).map(|one| delay_of(&one).as_secs()).collect()
    };
    for way in WAYS {
        host.until(LONG, "three releases", || asked(way.name).len() >= 3);
        let of = |name| host.metrics().sum(name, &[("subscription", way.name)]);
        assert_eq!(of("pumphouse_delays_shortened_total"), 2.0, "{}", way.name);
        assert_eq!(of("pumphouse_settle_failures_total"), 0.0, "{}", way.name);
    }
    // Nothing is back, and nothing is asked again.
    let others = WAYS.map(|way| {
        let message = pumphouse_e2e::rocketmq::message(&done()).of("d");
        space.send_message(way.name, message)
    });
    host.until(LONG, "other messages", || {
        others.iter().all(|id| scene.guest_said("done").contains(id))
    });
    assert_eq!(scene.calls().len(), 4 * WAYS.len());
    for way in WAYS {
        assert_eq!(asked(way.name), [3 * DAY; 3], "{}", way.name);
    }
    let shortened = "a handler asked for a longer delay than the broker gives; it is shortened";
    assert_eq!(said(&scene, shortened), WAYS.len(), "once for each subscription");
    assert_eq!(host.stop(), 0);
}

/// S-3: no budget, a window of 6 s from the first delivery: the message is called while it is open, and rejected at
/// the deferral after it, saying so.
fn s_3_the_window_ends_what_the_budget_does_not() {
    let space = Space::new("window");
    let rest =
        format!("retry = {{ backoff = \"1s\", max_backoff = \"1s\", window = \"6s\" }}\n{DEAD}");
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let ids = WAYS.map(|way| (way, send(&space, way, &json!({ "do": "defer" }))));
    for (way, id) in &ids {
        let copy = &space.copies(PAST_LEASES, &format!("dead-{}", way.name), 1)[0];
        assert_eq!(copy.property("originalMessageId"), id);
        assert!(copy.property("rejectionMessage").contains("window"), "{copy:#?}");
        let calls: Vec<_> = scene.calls().into_iter().filter(|call| call.id == *id).collect();
        assert!(calls.len() > 1, "{}: {calls:?}", way.name);
        let took = calls.last().unwrap().since(&calls[0]);
        assert!(took >= Duration::from_secs(5), "{}: the last call after {took:?}", way.name);
    }
    assert_eq!(host.stop(), 0);
    ids.iter().for_each(|(way, _)| space.assert_settled(way.name, way.ordered));
}
