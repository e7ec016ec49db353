use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pumphouse_contract::ports::{Action, Settlement};
use pumphouse_rocketmq::Kind;
use pumphouse_test_brokers::Setup;

use crate::common::{LONG, Room, ask, body, own, settle};

const SECOND: Duration = Duration::from_secs(1);

/// All brokers of a topic are read, none before the others, and a broker that is away holds nobody up.
#[tokio::test]
async fn a_topic_on_two_brokers_is_read_from_both() {
    let mut server = own(Setup::default().two_brokers()).await;
    let namesrv = server.namesrv();
    let room = Room::on(&server, &namesrv, Kind::Normal).await;
    for number in 0..20 {
        room.send_to(number % 2, &format!("{}-{number}", number % 2)).await;
    }
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let mut calls = 0;
    while all.len() < 20 && calls < 60 {
        let got = room.source.receive(ask(4, SECOND, LONG)).await.expect("a receive");
        assert!(got.len() <= 4, "{}", got.len());
        seen.extend(got.iter().map(|it| body(it).to_owned()));
        all.extend(got);
        calls += 1;
    }
    assert_eq!((seen.len(), all.len()), (20, 20));
    let settlements = all
        .iter()
        .map(|it| Settlement { receipt: it.receipt.clone(), action: Action::Ack })
        .collect();
    assert_eq!(room.source.settle(settlements).await, vec![Ok(()); 20]);
    assert!(room.is_empty_for(3 * SECOND).await);

    // One at a time, each broker in its turn.
    for broker in [0, 1] {
        for number in 0..4 {
            room.send_to(broker, &format!("{broker}-{number}")).await;
        }
    }
    let mut turns = Vec::new();
    for _ in 0..4 {
        let got = room.one().await;
        turns.push(body(&got)[..1].to_owned());
        room.ack(&got).await;
    }
    turns.sort();
    assert_eq!(turns, ["0", "0", "1", "1"]);
    for _ in 0..4 {
        let got = room.one().await;
        room.ack(&got).await;
    }

    // Whoever waits at both is told of a message at either, within the same wait.
    for broker in [0, 1] {
        let waits = room.source.receive(ask(1, 3 * SECOND, LONG));
        let sends = async {
            tokio::time::sleep(SECOND / 2).await;
            room.send_to(broker, "late").await;
        };
        let (got, ()) = tokio::join!(waits, sends);
        let got = got.expect("a receive");
        assert_eq!(got.len(), 1, "at broker {broker}");
        room.ack(&got[0]).await;
    }

    // One is away: what lies at the other is read and settled.
    room.send_to(1, "there").await;
    let held = room.one().await;
    server.kill_broker(0);
    room.send_to(1, "other").await;
    let begun = Instant::now();
    let got = room.one().await;
    assert!(body(&got) == "other" && begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
    for one in [&held, &got] {
        settle(room.source.as_ref(), one, Action::Ack).await.expect("settled");
    }
    assert!(room.is_empty_for(SECOND).await);
    server.restart_broker(0).await.expect("it starts");
    room.send_to(0, "back").await;
    // A broker that was killed forgets the acknowledgements of its last seconds.
    loop {
        let got = room.one().await;
        room.ack(&got).await;
        if body(&got) == "back" {
            break;
        }
    }
}
