use std::time::Duration;

use pumphouse_contract::Count;
use pumphouse_rocketmq::Kind;

use crate::common::{LONG, Room, ask, body, count, send};

const SECOND: Duration = Duration::from_secs(1);

async fn fill(room: &Room, queue: u32, bodies: &[&str]) {
    for body in bodies {
        let id = format!("UNIQ_KEY\u{1}{body}\u{2}__SHARDINGKEY\u{1}{queue}\u{2}");
        send(&room.brokers[0], &room.name, queue, &id, body.as_bytes(), 0).await;
    }
}

/// S-6, FR-11: while a head is out or deferred nothing of its queue is given, and other queues go on.
#[tokio::test]
async fn s_6_nothing_overtakes_a_head_and_other_queues_go_on() {
    let room = Room::open(Kind::Fifo).await;
    fill(&room, 0, &["a1", "a2", "a3"]).await;
    fill(&room, 1, &["b1", "b2"]).await;
    let mut heads = [room.one().await, room.one().await];
    heads.sort_by(|one, other| body(one).cmp(body(other)));
    let [a1, b1] = heads;
    assert_eq!((body(&a1), body(&b1)), ("a1", "b1"));
    assert!(room.is_empty_for(SECOND).await);
    room.release(&a1, 2 * SECOND).await;
    room.ack(&b1).await;
    let b2 = room.one().await;
    assert_eq!(body(&b2), "b2");
    room.ack(&b2).await;
    let mut order = Vec::new();
    for _ in 0..3 {
        let got = room.one().await;
        order.push((body(&got).to_owned(), count(&got)));
        room.ack(&got).await;
    }
    let expected = [("a1", Count(1)), ("a2", Count(0)), ("a3", Count(0))];
    assert_eq!(order, expected.map(|(body, count)| (body.to_owned(), count)));
}

/// C-18: a pop of several brings several of one queue, and each of them was delivered; so a pump asks for one.
#[tokio::test]
async fn c_18_followers_of_one_pop_count_with_their_head() {
    let room = Room::open(Kind::Fifo).await;
    fill(&room, 0, &["a1", "a2", "a3"]).await;
    let first = room.source.receive(ask(3, SECOND, LONG)).await.expect("a receive");
    assert_eq!(first.iter().map(body).collect::<Vec<_>>(), ["a1", "a2", "a3"]);
    for one in first.iter().rev() {
        room.release(one, Duration::ZERO).await;
    }
    let again = room.source.receive(ask(3, SECOND, LONG)).await.expect("a receive");
    let counts: Vec<_> = again.iter().map(|it| (body(it), count(it))).collect();
    assert_eq!(counts, [("a1", Count(1)), ("a2", Count(1)), ("a3", Count(1))]);
    for one in &again {
        room.ack(one).await;
    }
    assert!(room.is_empty_for(SECOND).await);
}
