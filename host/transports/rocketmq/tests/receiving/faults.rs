use std::time::{Duration, Instant};

use pumphouse_contract::Count;
use pumphouse_contract::ports::{Action, Failure, ReceiveError};
use pumphouse_rocketmq::Kind;
use pumphouse_test_brokers::remoting::{RemotingProxy, code};
use pumphouse_test_brokers::{RocketMq, Setup};

use crate::common::{
    LONG, Room, SOON, ask, count, one, open, own, patiently, server, settings, settle,
};

const SECOND: Duration = Duration::from_secs(1);

/// The reader goes through a proxy.
async fn behind_proxy(kind: Kind) -> (Room, RemotingProxy) {
    let server = server().await;
    let proxy = RemotingProxy::start(&server).await.expect("a proxy");
    let room = through(&server, &proxy, kind).await;
    (room, proxy)
}

async fn through(server: &RocketMq, proxy: &RemotingProxy, kind: Kind) -> Room {
    Room::with(server, settings(&proxy.namesrv()), kind, 2).await
}

/// C-6: a delivery, an acknowledgement and a release are one request each, and nothing else is asked.
#[tokio::test]
async fn c_6_each_of_them_is_one_request() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let (room, proxy) = behind_proxy(kind).await;
        // The route is asked once.
        assert!(
            room.source.receive(ask(1, Duration::ZERO, LONG)).await.expect("nothing").is_empty()
        );
        room.send("body").await;
        proxy.reset();
        let got = room.source.receive(ask(1, SECOND, LONG)).await.expect("a receive");
        room.release(&got[0], Duration::ZERO).await;
        let counted = [(code::POP_MESSAGE, 1), (code::CHANGE_MESSAGE_INVISIBLETIME, 1)];
        assert_eq!(proxy.counts(), counted.into(), "{kind:?}");
        let again = room.one().await;
        proxy.reset();
        room.ack(&again).await;
        assert_eq!(proxy.counts(), [(code::ACK_MESSAGE, 1)].into(), "{kind:?}");
    }
}

/// C-2: a pop whose answer was lost has delivered: the message comes when its lease is over, counted once more.
#[tokio::test]
async fn c_2_a_pop_whose_answer_was_lost_is_counted() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let (room, proxy) = behind_proxy(kind).await;
        room.send("body").await;
        let lost = proxy.on(code::POP_MESSAGE).nth(1).drop_after();
        let error = room.source.receive(ask(1, SECOND, 2 * SECOND)).await.expect_err("no answer");
        assert!(matches!(error, ReceiveError::Unavailable(..)) && lost.count() == 1, "{error}");
        let got = room.one().await;
        assert_eq!(count(&got), Count(1), "{kind:?}");
        room.ack(&got).await;
        assert!(room.is_empty_for(3 * SECOND).await, "{kind:?}");
    }
}

/// A drain waits for a pop without an answer as long as the pop itself was to wait, and a second. What it took comes
/// again all the same, counted once more.
#[tokio::test]
async fn c_2_a_pop_without_an_answer_is_given_up_in_a_hurry() {
    let (room, proxy) = behind_proxy(Kind::Normal).await;
    // The route is asked once.
    assert!(room.source.receive(ask(1, Duration::ZERO, LONG)).await.expect("nothing").is_empty());
    room.send("body").await;
    let lost = proxy.on(code::POP_MESSAGE).nth(1).drop_after();
    let begun = Instant::now();
    let hurry = async {
        tokio::time::sleep(SECOND / 2).await;
        room.source.interrupt();
    };
    let (got, ()) = tokio::join!(room.source.receive(ask(1, 2 * SECOND, 2 * SECOND)), hurry);
    let error = got.expect_err("no answer");
    assert!(matches!(error, ReceiveError::Unavailable(..)) && lost.count() == 1, "{error}");
    // Without a hurry it is 10 s.
    let took = begun.elapsed();
    assert!((3 * SECOND..7 * SECOND).contains(&took), "{took:?}");
    let again = room.one().await;
    assert_eq!(count(&again), Count(1));
    room.ack(&again).await;
}

/// A pop of which the connection was closed just then is no different, and what is asked afterwards is answered.
#[tokio::test]
async fn a_pop_of_a_closed_connection_is_given_up_in_a_hurry() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let (room, proxy) = behind_proxy(kind).await;
        let begun = Instant::now();
        let close = async {
            assert!(proxy.wait_for(code::POP_MESSAGE, 1, SOON).await, "a pop");
            tokio::time::sleep(SECOND / 5).await;
            proxy.cut().await;
            room.source.interrupt();
        };
        let (got, ()) = tokio::join!(room.source.receive(ask(1, 2 * SECOND, LONG)), close);
        assert!(matches!(got, Err(ReceiveError::Unavailable(..))), "{got:?}");
        assert!(begun.elapsed() < 7 * SECOND, "{kind:?}: {:?}", begun.elapsed());
        room.send("body").await;
        let got = room.one().await;
        room.ack(&got).await;
    }
}

/// C-9: an acknowledgement that was done and never confirmed is asked again, which harms nothing.
#[tokio::test]
async fn c_9_a_lost_acknowledgement_is_asked_again() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let (room, proxy) = behind_proxy(kind).await;
        room.send("body").await;
        let got = one(room.source.as_ref(), 15 * SECOND).await;
        let lost = proxy.on(code::ACK_MESSAGE).nth(1).drop_after();
        let unsettled = settle(room.source.as_ref(), &got, Action::Ack).await;
        let unsettled = unsettled.expect_err("no answer");
        assert!(unsettled.failure == Failure::Retry && lost.count() == 1, "{}", unsettled.text);
        room.ack(&got).await;
        assert!(room.is_empty_for(15 * SECOND).await, "{kind:?}");
    }
}

/// C-4: a release of a normal topic's message that was sent and not confirmed is not sent again, or the message would
/// come twice, each with a count of its own. Of a FIFO topic it may be.
#[tokio::test]
async fn c_4_a_lost_release_brings_the_message_once() {
    for (kind, failure) in [(Kind::Normal, Failure::Gone), (Kind::Fifo, Failure::Retry)] {
        let (room, proxy) = behind_proxy(kind).await;
        room.send("body").await;
        let got = one(room.source.as_ref(), 20 * SECOND).await;
        let release = Action::Release(Duration::ZERO);
        let lost = proxy.on(code::CHANGE_MESSAGE_INVISIBLETIME).nth(1).drop_after();
        let unsettled = settle(room.source.as_ref(), &got, release).await.expect_err("no answer");
        assert!(unsettled.failure == failure && lost.count() == 1, "{}", unsettled.text);
        let repeated = settle(room.source.as_ref(), &got, release).await;
        assert_eq!(
            repeated.map_err(|it| it.failure).err(),
            (kind == Kind::Normal).then_some(Failure::Gone)
        );
        let again = room.one().await;
        assert_eq!(count(&again), Count(1), "{kind:?}");
        assert!(room.is_empty_for(4 * SECOND).await, "{kind:?}");
        room.ack(&again).await;
    }
}

/// FR-34: a failed settlement is told with what it means, and the delivery stays ours.
#[tokio::test]
async fn fr_34_a_failed_settlement_is_told_and_can_be_asked_again() {
    let (room, proxy) = behind_proxy(Kind::Normal).await;
    room.send("body").await;
    let got = room.one().await;
    let release = Action::Release(Duration::ZERO);
    for (request, action) in
        [(code::ACK_MESSAGE, Action::Ack), (code::CHANGE_MESSAGE_INVISIBLETIME, release)]
    {
        for (answer, failure) in [
            (code::SYSTEM_BUSY, Failure::Retry),
            (code::SERVICE_NOT_AVAILABLE, Failure::Retry),
            (code::TOPIC_NOT_EXIST, Failure::Gone),
            (208, Failure::Gone),
            (code::NO_PERMISSION, Failure::Refused),
            (code::MESSAGE_ILLEGAL, Failure::Refused),
        ] {
            let rule = proxy.on(request).times(1).answer(answer, "as told");
            let unsettled = settle(room.source.as_ref(), &got, action).await.expect_err("refused");
            assert_eq!(unsettled.failure, failure, "{request} {answer}: {}", unsettled.text);
            assert_eq!(unsettled.settlement.receipt, got.receipt);
            assert!(unsettled.text.contains("as told") && rule.count() == 1, "{}", unsettled.text);
        }
    }
    room.ack(&got).await;
    assert!(room.is_empty_for(3 * SECOND).await);
}

/// FR-33: what a broker says instead of messages is told, and is none of the answers that there are none.
#[tokio::test]
async fn fr_33_a_refused_pop_is_told() {
    let (room, proxy) = behind_proxy(Kind::Normal).await;
    for (answer, label) in [
        (code::SYSTEM_BUSY, "unavailable"),
        (209, "unavailable"),
        (code::SYSTEM_ERROR, "unavailable"),
        (code::NO_PERMISSION, "denied"),
        (code::TOPIC_NOT_EXIST, "missing"),
        (code::SUBSCRIPTION_GROUP_NOT_EXIST, "missing"),
        (23, "other"),
    ] {
        let _rule = proxy.on(code::POP_MESSAGE).times(1).answer(answer, "as told");
        let error = room.source.receive(ask(1, SECOND, LONG)).await.expect_err("refused");
        assert!(error.label() == label && error.to_string().contains("as told"), "{error}");
    }
    // A broker that ends each wait at once is not asked without a pause.
    let _rule = proxy.on(code::POP_MESSAGE).answer(code::POLLING_TIMEOUT, "");
    proxy.reset();
    let begun = Instant::now();
    while begun.elapsed() < SECOND {
        assert!(room.source.receive(ask(1, SECOND, LONG)).await.expect("a receive").is_empty());
    }
    assert!(proxy.count(code::POP_MESSAGE) <= 11, "{}", proxy.count(code::POP_MESSAGE));
}

/// A broker that is away is told as such; when it is back, messages and counts go on, and what was out lapses or is
/// settled.
#[tokio::test]
async fn a_broker_that_is_killed_and_comes_back_has_everything() {
    let mut server = own(Setup::default()).await;
    let proxy = RemotingProxy::start(&server).await.expect("a proxy");
    let rooms =
        [through(&server, &proxy, Kind::Normal).await, through(&server, &proxy, Kind::Fifo).await];
    let mut held = Vec::new();
    for room in &rooms {
        room.send("body").await;
        let first = room.one().await;
        room.release(&first, Duration::ZERO).await;
        held.push(one(room.source.as_ref(), 4 * SECOND).await);
    }
    // FIFO counts and offsets are written ten seconds after the start, and every five.
    tokio::time::sleep(12 * SECOND).await;
    server.kill_broker(0);
    for (room, got) in rooms.iter().zip(&held) {
        let begun = Instant::now();
        let error = room.source.receive(ask(1, SECOND, LONG)).await.expect_err("away");
        assert!(matches!(error, ReceiveError::Unavailable(..)), "{error}");
        assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
        let unsettled = settle(room.source.as_ref(), got, Action::Ack).await.expect_err("away");
        assert_eq!(unsettled.failure, Failure::Retry, "{}", unsettled.text);
    }
    server.restart_broker(0).await.expect("it starts");
    for room in &rooms {
        let got = patiently(room.source.as_ref(), LONG, 60 * SECOND).await;
        assert!(count(&got) >= Count(2), "{:?}", count(&got));
        let until = Instant::now() + SOON;
        while settle(room.source.as_ref(), &got, Action::Ack).await.is_err() {
            assert!(Instant::now() < until, "no acknowledgement is taken");
            tokio::time::sleep(SECOND / 5).await;
        }
    }
}

/// A name server that is away stops nobody who knows the way.
#[tokio::test]
async fn a_known_route_outlives_its_name_server() {
    let mut server = own(Setup::default()).await;
    let namesrv = server.namesrv();
    let room = Room::on(&server, &namesrv, Kind::Normal).await;
    room.send("one").await;
    let got = room.one().await;
    server.kill_namesrv();
    room.ack(&got).await;
    room.send("two").await;
    let got = room.one().await;
    room.ack(&got).await;
    let other = open(&room.rocketmq, "not-asked-yet", Kind::Normal).await;
    let begun = Instant::now();
    let error = other.receive(ask(1, SECOND, LONG)).await.expect_err("no route");
    assert!(matches!(error, ReceiveError::Unavailable(..)), "{error}");
    assert!(begun.elapsed() < 12 * SECOND, "{:?}", begun.elapsed());
    server.restart_namesrv().await.expect("it starts");
    let error = other.receive(ask(1, SECOND, LONG)).await.expect_err("no such topic");
    assert!(matches!(error, ReceiveError::Missing(..)), "{error}");
}

/// What is closed is closed soon, also while a pop waits and while the broker is dead.
#[tokio::test]
async fn a_close_takes_less_than_5_s() {
    for kill in [false, true] {
        let mut server = own(Setup::default()).await;
        let namesrv = server.namesrv();
        let room = Room::on(&server, &namesrv, Kind::Normal).await;
        room.send("body").await;
        let got = room.one().await;
        room.ack(&got).await;
        let source = room.source.clone();
        let poll = tokio::spawn(async move { source.receive(ask(1, 5 * SECOND, LONG)).await });
        tokio::time::sleep(SECOND / 2).await;
        if kill {
            server.kill_broker(0);
            server.kill_namesrv();
        }
        let begun = Instant::now();
        room.rocketmq.close().await;
        assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
        let polled = tokio::time::timeout(12 * SECOND, poll).await.expect("it ends");
        let _ = polled.expect("no panic");
        assert!(room.source.receive(ask(1, SECOND, LONG)).await.is_err());
    }
}
