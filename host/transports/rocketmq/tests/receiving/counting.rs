use std::time::{Duration, Instant};

use pumphouse_contract::Count;
use pumphouse_rocketmq::Kind;

use crate::common::{LONG, Room, count, one, open};

/// C-1, C-2, C-3: the first delivery presents 0, and each one after it one more: after a lapse, a release, and a release
/// with a delay.
#[tokio::test]
async fn c_1_every_delivery_presents_a_greater_count() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let room = Room::open(kind).await;
        room.send("body").await;
        let first = one(room.source.as_ref(), Duration::from_secs(2)).await;
        assert_eq!(count(&first), Count(0), "{kind:?}");
        let second = room.one().await;
        assert_eq!(count(&second), Count(1), "{kind:?} after a lapse");
        room.release(&second, Duration::ZERO).await;
        let third = room.one().await;
        assert_eq!(count(&third), Count(2), "{kind:?} after a release");
        room.release(&third, Duration::from_secs(1)).await;
        let fourth = room.one().await;
        assert_eq!(count(&fourth), Count(3), "{kind:?} after a delayed release");
        assert_eq!(fourth.message, first.message, "{kind:?}");
        room.ack(&fourth).await;
        assert!(room.is_empty_for(Duration::from_secs(4)).await, "{kind:?}");
    }
}

/// C-1: the broker keeps the number, so another host goes on with it.
#[tokio::test]
async fn c_1_another_host_goes_on_with_the_count() {
    for kind in [Kind::Normal, Kind::Fifo] {
        let room = Room::open(kind).await;
        let other = open(&room.rocketmq, &room.name, kind).await;
        room.send("body").await;
        let mut previous = None;
        for turn in 0..4 {
            let source = if turn % 2 == 0 { room.source.as_ref() } else { other.as_ref() };
            let got = one(source, LONG).await;
            assert!(previous < Some(count(&got)), "{kind:?}: {previous:?}, {:?}", count(&got));
            previous = Some(count(&got));
            room.release(&got, Duration::ZERO).await;
        }
        assert_eq!(previous, Some(Count(3)), "{kind:?}");
    }
}

/// FR-04: a deferral is told to the broker, and the message is back after it, not after the old lease.
#[tokio::test]
async fn fr_04_a_deferral_of_15_s_is_over_after_15_s() {
    let rooms = [Room::open(Kind::Normal).await, Room::open(Kind::Fifo).await];
    let checks = rooms.map(|room| async move {
        room.send("body").await;
        let first = room.one().await;
        let asked = Instant::now();
        room.release(&first, Duration::from_secs(15)).await;
        assert!(room.is_empty_for(Duration::from_millis(14_500)).await);
        let second = room.one().await;
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(45), "{took:?}");
        assert_eq!(count(&second), Count(1));
    });
    futures_util::future::join_all(checks).await;
}
