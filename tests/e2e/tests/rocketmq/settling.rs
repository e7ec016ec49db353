//! Deferrals and acknowledgements: what the broker is told, and what happens where it is not.

use std::time::Duration;

use pumphouse_e2e::rocketmq::{Space, delay_of, message, proxy};
use pumphouse_e2e::{Call, LONG, Scene};
use pumphouse_test_brokers::remoting::{RemotingProxy, Request, code};
use serde_json::json;

use crate::common::{
    DEAD, FAILED, FIFO, HOST, NORMAL, PAST_LEASES, WAYS, Way, about, counts_of, done, saying, send,
    set, slowly_done, work,
};

pumphouse_e2e::tests! {
    a_stale_receipt_does_nothing_and_the_message_comes_again,
    fr_04_a_deferral_tells_the_broker,
    fr_04_a_change_that_is_refused_is_said_and_nothing_is_acknowledged,
    a_pop_whose_answer_is_lost_is_counted_once_more,
    an_acknowledgement_that_fails_as_often_as_it_is_tried_is_handled_again,
    an_acknowledgement_lost_on_its_way_is_sent_again,
    a_release_lost_on_its_way_is_sent_again_where_that_makes_no_second_message,
    fr_14_a_message_is_seen_only_when_its_handler_succeeded,
    fr_15_a_duplicate_is_acknowledged_and_not_ignored,
}

/// The lease of a handler with a deadline of two seconds and no destination. It begins at the pop.
const SHORT_LEASE: Duration = Duration::from_secs(20);
/// What came again after so long came because its lease was over: on a machine that does many things at once, a call
/// may be seconds behind its pop.
const LAPSED: Duration = Duration::from_secs(13);

fn calls_of(scene: &Scene, id: &str) -> Vec<Call> {
    scene.calls().into_iter().filter(|call| call.id == id).collect()
}

/// The requests of one kind about a way's group.
fn asked(proxy: &RemotingProxy, space: &Space, way: Way, code: i32) -> Vec<Request> {
    let ours = about(space, way.name);
    proxy.requests().into_iter().filter(|one| one.code == code && ours(one)).collect()
}

/// FR-04: a deferral for 15 s under a lease of 60 s. The message is back when its delay is over, not its lease, with a
/// count; one change of its invisible time is the whole deferral; at the budget it is dead-lettered.
fn fr_04_a_deferral_tells_the_broker() {
    let space = Space::new("fr04");
    let proxy = proxy();
    let text = work(&WAYS, &format!("max_deliveries = 2\n{DEAD}"))
        .replace("deadline = \"2s\"", "deadline = \"32s\"");
    let scene = space.scene(&proxy.namesrv(), HOST, &text);
    let host = scene.start();
    let body = json!({ "do": "defer", "ms": 15_000 });
    let sent = WAYS.map(|way| (way, send(&space, way, &body)));
    for (way, id) in &sent {
        host.until(Duration::from_secs(50), "the second delivery", || {
            counts_of(&scene, id) == [0, 1]
        });
        let calls = calls_of(&scene, id);
        let waited = calls[1].since(&calls[0]).as_secs_f64();
        // A normal topic's messages also wait for the broker to look, some 2 s.
        assert!((14.9..30.0).contains(&waited), "{}: back after {waited} s", way.name);
        let copy = &space.copies(LONG, &format!("dead-{}", way.name), 1)[0];
        assert_eq!(copy.property("originalMessageId"), id);
        assert_eq!(copy.property("deliveryCount"), "2");
        assert_eq!(copy.property("rejectionReason"), "DeliveryError");
        let leases: Vec<Duration> =
            asked(&proxy, &space, *way, code::POP_MESSAGE).iter().map(delay_of).collect();
        assert!(leases.iter().all(|lease| *lease == Duration::from_secs(60)), "{leases:?}");
        let delays: Vec<Duration> = asked(&proxy, &space, *way, code::CHANGE_MESSAGE_INVISIBLETIME)
            .iter()
            .map(delay_of)
            .collect();
        assert_eq!(delays, [Duration::from_secs(15)], "{}: one change", way.name);
    }
    assert_eq!(host.stop(), 0);
    sent.iter().for_each(|(way, _)| space.assert_settled(way.name, way.ordered));
}

/// FR-04: the broker does not take the change. The deferral is reported as failed in log and metric, the message is
/// not acknowledged, and it comes again when its lease is over.
fn fr_04_a_change_that_is_refused_is_said_and_nothing_is_acknowledged() {
    let space = Space::new("fr04-refused");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let body = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 1_000 }, done()] });
    let sent = WAYS.map(|way| {
        let on = || proxy.on(code::CHANGE_MESSAGE_INVISIBLETIME).when(about(&space, way.name));
        // For good, and as often as it is tried.
        let refused = if way == NORMAL {
            on().answer(code::MESSAGE_ILLEGAL, "not so")
        } else {
            on().answer(code::SYSTEM_ERROR, "broken")
        };
        (way, refused, send(&space, way, &body))
    });
    for (way, refused, id) in &sent {
        host.until(LONG, "the failure", || {
            host.log.saying(FAILED).iter().any(|line| line.field("message_id") == id)
        });
        assert!((1..=3).contains(&refused.count()), "{}: {} tries", way.name, refused.count());
        let failures =
            host.metrics().sum("pumphouse_settle_failures_total", &[("subscription", way.name)]);
        assert_eq!(failures, 1.0, "{}", way.name);
        assert_eq!(counts_of(&scene, id), [0], "{}", way.name);
        let acknowledged = asked(&proxy, &space, *way, code::ACK_MESSAGE).len();
        assert_eq!(acknowledged, 0, "{}", way.name);
    }
    for (way, _, id) in &sent {
        host.until(PAST_LEASES, "the next delivery", || counts_of(&scene, id) == [0, 1]);
        let calls = calls_of(&scene, id);
        let waited = calls[1].since(&calls[0]);
        assert!(waited >= LAPSED, "{}: {waited:?}", way.name);
    }
    assert_eq!(saying(&scene, FAILED).len(), 2);
    assert_eq!(host.stop(), 0);
    sent.iter().for_each(|(way, ..)| space.assert_settled(way.name, way.ordered));
}

/// Every acknowledgement of the first delivery is on its way for longer than the lease. When they arrive they do
/// nothing: the message has been given again, with a count, and comes until it is acknowledged in time.
fn a_stale_receipt_does_nothing_and_the_message_comes_again() {
    let space = Space::new("stale");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let body = json!({
        "do": "sequence",
        "steps": [done(), { "do": "defer", "ms": 20_000 }, { "do": "log", "text": "again", "then": "ack" }],
    });
    let late = SHORT_LEASE + Duration::from_secs(7);
    let sent = WAYS.map(|way| {
        let on = proxy.on(code::ACK_MESSAGE).when(about(&space, way.name));
        (way, on.times(3).delay(late), send(&space, way, &body))
    });
    for (way, held, id) in &sent {
        host.until(PAST_LEASES, "a delivery after the stale ones", || {
            counts_of(&scene, id) == [0, 1, 2]
        });
        assert_eq!(held.count(), 3, "{}", way.name);
        let calls = calls_of(&scene, id);
        let lapsed = calls[1].since(&calls[0]);
        assert!(lapsed >= LAPSED, "{}: {lapsed:?}", way.name);
        host.until(LONG, "the last one", || scene.guest_said("again").contains(id));
    }
    assert_eq!(host.stop(), 0);
    let failed: Vec<String> =
        scene.logs()[0].saying(FAILED).iter().map(|l| l.field("message_id").to_owned()).collect();
    assert_eq!(set(&failed), set(&sent.each_ref().map(|(.., id)| id.clone())));
    sent.iter().for_each(|(way, ..)| space.assert_settled(way.name, way.ordered));
}

/// C-2's residual: the broker gave the message and the answer was lost. It can't be told from a delivery; the message
/// comes when its lease is over, and its first call sees a 1.
fn a_pop_whose_answer_is_lost_is_counted_once_more() {
    let space = Space::new("lost-pop");
    let proxy = proxy();
    let sent = WAYS.map(|way| {
        space.create(way.name, way.ordered);
        (way, send(&space, way, &done()))
    });
    let lost = WAYS.map(|way| {
        let on = proxy.on(code::POP_MESSAGE).when(about(&space, way.name));
        on.times(1).drop_after()
    });
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, "concurrency = 1"));
    let host = scene.start();
    assert_eq!(lost.each_ref().map(|rule| rule.count()), [1, 1], "the first pop of each");
    for (way, id) in &sent {
        host.until(PAST_LEASES, "the message", || scene.guest_said("done").contains(id));
        assert_eq!(counts_of(&scene, id), [1], "{}", way.name);
    }
    let stalls = host.metrics().sum("pumphouse_receive_stalls_total", &[]);
    assert_eq!(stalls, 2.0, "each is a poll that did not return");
    assert_eq!(host.stop(), 0);
    sent.iter().for_each(|(way, _)| space.assert_settled(way.name, way.ordered));
}

/// Every try is lost: said once with the message's id, counted, and the message comes again when its lease is over,
/// with a count.
fn an_acknowledgement_that_fails_as_often_as_it_is_tried_is_handled_again() {
    let space = Space::new("never");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let sent = WAYS.map(|way| {
        let on = proxy.on(code::ACK_MESSAGE).when(about(&space, way.name));
        (way, on.times(3).drop_before(), send(&space, way, &done()))
    });
    for (way, lost, id) in &sent {
        host.until(LONG, "three lost tries", || lost.count() == 3);
        host.until(LONG, "the failure", || {
            host.log.saying(FAILED).iter().any(|line| line.field("message_id") == id)
        });
        let failures =
            host.metrics().sum("pumphouse_settle_failures_total", &[("subscription", way.name)]);
        assert_eq!(failures, 1.0, "{}", way.name);
    }
    for (way, _, id) in &sent {
        host.until(PAST_LEASES, "it again", || counts_of(&scene, id) == [0, 1]);
        host.until(LONG, "its end", || {
            scene.guest_said("done").iter().filter(|one| *one == id).count() == 2
        });
        host.until(LONG, "a fourth acknowledgement, which arrives", || {
            asked(&proxy, &space, *way, code::ACK_MESSAGE).len() == 4
        });
    }
    assert_eq!(saying(&scene, FAILED).len(), 2);
    assert_eq!(host.stop(), 0);
    sent.iter().for_each(|(way, ..)| space.assert_settled(way.name, way.ordered));
}

/// Lost before the broker has it, or its answer lost, or refused for now: it is sent again, and the message is handled
/// once.
fn an_acknowledgement_lost_on_its_way_is_sent_again() {
    let space = Space::new("lost");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let mut sent = Vec::new();
    for round in 0..4 {
        let rules = WAYS.map(|way| {
            let on = proxy.on(code::ACK_MESSAGE).when(about(&space, way.name)).times(1);
            match round {
                0 => on.drop_before(),
                1 => on.drop_after(),
                2 => on.answer(code::SYSTEM_BUSY, "too many requests"),
                _ => on.close_after(),
            }
        });
        sent.extend(WAYS.map(|way| send(&space, way, &done())));
        host.until(LONG, "the lost ones", || rules.iter().all(|rule| rule.count() == 1));
        host.until(LONG, "all handled", || scene.guest_said("done").len() == sent.len());
    }
    assert_eq!(host.stop(), 0);
    assert_eq!(scene.guest_said("done").len(), sent.len(), "each once");
    assert_eq!(set(&scene.guest_said("done")), set(&sent));
    assert_eq!(saying(&scene, FAILED), Vec::<String>::new());
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// What becomes of a release on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The broker has no time for it.
    Refused,
    /// It never reaches the broker.
    Lost,
    /// It is done, and the answer is lost.
    Unanswered,
    /// Its connection is closed.
    Closed,
}

/// On a FIFO topic a release that is lost is sent again, and the message is back after its delay and not after its
/// lease. On a normal topic the broker would store the message anew for each that it gets: one that was sent and not
/// answered is not sent again. It is said, and the message comes when the lease is over, or after the delay where the
/// broker had the release; once in either case.
fn a_release_lost_on_its_way_is_sent_again_where_that_makes_no_second_message() {
    let space = Space::new("released");
    let proxy = proxy();
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, ""));
    let host = scene.start();
    let body = json!({ "do": "sequence", "steps": [{ "do": "defer", "ms": 1_000 }, done()] });
    let cases = [
        (NORMAL, Fate::Refused, "a"),
        (FIFO, Fate::Refused, "b"),
        (FIFO, Fate::Lost, "c"),
        (NORMAL, Fate::Lost, "d"),
        (NORMAL, Fate::Unanswered, "e"),
        (FIFO, Fate::Closed, "f"),
    ];
    let sent = cases.map(|(way, fate, group)| {
        if fate == Fate::Closed {
            // With the connection goes whatever waits on it: no other release, then.
            host.until(LONG, "the others", || scene.guest_said("done").len() >= cases.len() - 2);
        }
        let change = code::CHANGE_MESSAGE_INVISIBLETIME;
        let on = proxy.on(change).when(about(&space, way.name)).times(1);
        let rule = match fate {
            Fate::Refused => on.answer(code::SYSTEM_BUSY, "too many requests"),
            Fate::Lost => on.drop_before(),
            Fate::Unanswered => on.drop_after(),
            Fate::Closed => on.close_before(),
        };
        let id = space.send_message(way.name, message(&body).of(group));
        host.until(LONG, "its release", || rule.count() == 1);
        (way, fate, id)
    });
    host.until(PAST_LEASES, "all handled", || scene.guest_said("done").len() == sent.len());
    let failed = |id: &str| -> Vec<String> {
        let ours = host.log.saying(FAILED).into_iter();
        ours.filter(|line| line.field("message_id") == id).map(|line| line.text).collect()
    };
    for (way, fate, id) in &sent {
        let what = format!("{}: {fate:?}", way.name);
        assert_eq!(counts_of(&scene, id), [0, 1], "{what}");
        let calls = calls_of(&scene, id);
        let waited = calls[1].since(&calls[0]);
        let is_doubtful = !way.ordered && *fate != Fate::Refused;
        assert_eq!(failed(id).len(), usize::from(is_doubtful), "{what}: {:?}", failed(id));
        let lapsed = is_doubtful && *fate == Fate::Lost;
        assert_eq!(waited >= LAPSED, lapsed, "{what}: {waited:?}");
    }
    assert_eq!(host.stop(), 0);
    let changes =
        WAYS.map(|way| asked(&proxy, &space, way, code::CHANGE_MESSAGE_INVISIBLETIME).len());
    assert_eq!(changes, [4, 6], "twice each, but for the two in doubt");
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-14: a trap, a deadline and a deferral leave no mark: the message is handled again, and only then is a copy of it
/// a duplicate.
fn fr_14_a_message_is_seen_only_when_its_handler_succeeded() {
    let space = Space::new("fr14");
    let rest = "deduplicate = { key = \"header:KEYS\" }\nretry = { backoff = \"1s\", max_backoff = \"1s\" }";
    let scene = space.scene(&space.place().namesrv, HOST, &work(&WAYS, rest));
    let host = scene.start();
    let trap = json!({ "do": "trap", "text": "on purpose" });
    let slow = json!({ "do": "sleep", "ms": 5_000, "then": "ack" });
    let defer = json!({ "do": "defer", "ms": 500 });
    let body = json!({ "do": "sequence", "steps": [trap, slow, defer, done()] });
    let keyed = |body: &serde_json::Value, key: &str| message(body).with("KEYS", key).of("a");
    let sent = WAYS.map(|way| (way, space.send_message(way.name, keyed(&body, "one"))));
    for (_, id) in &sent {
        host.until(PAST_LEASES, "its success", || scene.guest_said("done").contains(id));
        assert_eq!(counts_of(&scene, id), [0, 1, 2, 3]);
    }
    let copies = WAYS.map(|way| space.send_message(way.name, keyed(&done(), "one")));
    host.until(LONG, "two duplicates", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) == 2.0
    });
    assert_eq!(host.stop(), 0);
    for id in &copies {
        assert_eq!(counts_of(&scene, id), Vec::<u32>::new(), "a duplicate is no call");
    }
    WAYS.iter().for_each(|way| space.assert_settled(way.name, way.ordered));
}

/// FR-15: an acknowledgement that never arrives makes the redelivery a duplicate, which is acknowledged without a call
/// and never ends at the dead-letter topic.
fn fr_15_a_duplicate_is_acknowledged_and_not_ignored() {
    let space = Space::new("fr15");
    let proxy = proxy();
    let rest = format!("max_deliveries = 2\ndeduplicate = {{}}\n{DEAD}");
    let scene = space.scene(&proxy.namesrv(), HOST, &work(&WAYS, &rest));
    let host = scene.start();
    let sent = WAYS.map(|way| {
        let on = proxy.on(code::ACK_MESSAGE).when(about(&space, way.name));
        (
            way,
            on.times(3).answer(code::SYSTEM_BUSY, "too many requests"),
            send(&space, way, &slowly_done(50)),
        )
    });
    host.until(LONG, "the failed removals", || {
        sent.iter().all(|(_, failed, _)| failed.count() == 3)
    });
    host.until(PAST_LEASES, "two duplicates", || {
        host.metrics().sum("pumphouse_dedup_hits_total", &[]) == 2.0
    });
    assert_eq!(host.stop(), 0);
    for (way, _, id) in &sent {
        assert_eq!(counts_of(&scene, id), [0], "{}", way.name);
        assert_eq!(space.stored(&format!("dead-{}", way.name)), []);
        space.assert_settled(way.name, way.ordered);
    }
}
