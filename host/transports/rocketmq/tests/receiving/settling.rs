use std::time::{Duration, Instant};

use pumphouse_contract::ports::{Action, Failure, Settlement};
use pumphouse_contract::{Count, Receipt};
use pumphouse_rocketmq::Kind;

use crate::common::{LONG, Room, ask, count, one, settle};

/// A settlement does not wait for a poll of the same connection.
#[tokio::test]
async fn a_settlement_goes_beside_a_poll() {
    let room = Room::open(Kind::Normal).await;
    room.send("body").await;
    let got = room.one().await;
    let poll = room.source.receive(ask(1, Duration::from_secs(3), LONG));
    let beside = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        room.ack(&got).await;
        begun.elapsed()
    };
    let begun = Instant::now();
    let (polled, took) = tokio::join!(poll, beside);
    assert!(polled.expect("a receive").is_empty());
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// An acknowledgement with the receipt of an earlier delivery, or one of a message that was removed, is answered as if
/// it were good and does nothing: RocketMQ can't tell.
#[tokio::test]
async fn a_stale_acknowledgement_harms_nothing() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let room = Room::open(kind).await;
        room.send("body").await;
        let stale = one(room.source.as_ref(), Duration::from_secs(1)).await;
        let got = one(room.source.as_ref(), Duration::from_secs(3)).await;
        room.ack(&stale).await;
        let again = room.one().await;
        assert_eq!(count(&again), Count(2), "{kind:?}");
        for _ in 0..2 {
            room.ack(&again).await;
        }
        room.ack(&got).await;
        assert!(room.is_empty_for(Duration::from_secs(4)).await, "{kind:?}");
    }
}

/// On a normal topic a release with a stale receipt would make a second copy of the message; so none is sent.
#[tokio::test]
async fn a_release_after_the_lease_is_not_sent() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let room = Room::open(kind).await;
        room.send("body").await;
        let stale = one(room.source.as_ref(), Duration::from_secs(1)).await;
        let got = room.one().await;
        let release = Action::Release(Duration::ZERO);
        let unsettled = settle(room.source.as_ref(), &stale, release).await.expect_err("stale");
        assert_eq!(unsettled.failure, Failure::Gone, "{kind:?}: {}", unsettled.text);
        assert!(room.is_empty_for(Duration::from_secs(4)).await, "{kind:?}");
        room.ack(&got).await;
        assert!(room.is_empty_for(Duration::from_secs(4)).await, "{kind:?}");
    }
}

/// A receipt that is none of RocketMQ's is refused, and is no reason to ask again.
#[tokio::test]
async fn a_receipt_of_nobody_is_refused() {
    let room = Room::open(Kind::Normal).await;
    let settlement = Settlement { receipt: Receipt::from("x".to_owned()), action: Action::Ack };
    let answer = room.source.settle(vec![settlement.clone()]).await.pop().expect("an answer");
    let unsettled = answer.expect_err("no receipt");
    assert_eq!((unsettled.failure, unsettled.settlement), (Failure::Refused, settlement));
    assert!(room.source.settle(Vec::new()).await.is_empty());
}
