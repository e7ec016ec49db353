use std::collections::BTreeSet;

use pumphouse_rocketmq::Kind;
use pumphouse_test_brokers::{JavaMessage, Received, Setup};

use crate::common::*;

fn place(received: &Received) -> (String, i32) {
    (received.broker.clone(), received.queue)
}

/// A message group is where the Java client puts it, also over several brokers.
#[tokio::test]
async fn a_message_group_has_the_queue_of_the_java_client() {
    let server = own(Setup::default().two_brokers()).await;
    let name = unique("groups");
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Fifo).await;
    // The last has the least hash that there is.
    let groups: Vec<String> = (0..12).map(|at| format!("group-{at}")).collect();
    let groups = groups.iter().map(String::as_str).chain(["ü", "键", "🦀", "polygenelubricants"]);
    let groups: Vec<&str> = groups.collect();
    let messages: Vec<_> = groups.iter().map(|it| JavaMessage::new("body").group(it)).collect();
    let theirs = server.java_client().send(&name, &messages).await.expect("sent");
    for group in &groups {
        sink.publish(keyed(group, group)).await.expect("published");
    }
    let got = foreign(&server, &name, 32).await;
    let mut places = BTreeSet::new();
    for (group, sent) in groups.iter().zip(&theirs) {
        let of_group: Vec<_> = got.iter().filter(|it| it.group.as_deref() == Some(group)).collect();
        assert_eq!(of_group.len(), 2, "{group}");
        for received in of_group {
            assert_eq!(place(received), (sent.broker.clone(), sent.queue), "{group}");
        }
        places.insert((sent.broker.clone(), sent.queue));
    }
    assert!(places.len() > 4, "{places:?}");
    rocketmq.close().await;
}

/// Messages without order go round all queues of all brokers.
#[tokio::test]
async fn messages_without_order_go_round_every_queue() {
    let server = own(Setup::default().two_brokers()).await;
    let name = unique("round");
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Normal).await;
    for _ in 0..16 {
        sink.publish(keyed("body", "one key")).await.expect("published");
    }
    let got = foreign(&server, &name, 16).await;
    let places: BTreeSet<_> = got.iter().map(place).collect();
    assert_eq!(places.len(), 8, "{places:?}");
    for place in places {
        assert_eq!(got.iter().filter(|it| (it.broker.clone(), it.queue) == place).count(), 2);
    }
    rocketmq.close().await;
}

/// C-11: to an ordered topic, what has no key gets one: its own id, or its original's.
#[tokio::test]
async fn every_message_of_an_ordered_topic_has_a_group() {
    let (server, name) = (server().await, unique("keyless"));
    let rocketmq = connect(&server.namesrv()).await;
    let sink = sink(&rocketmq, &name, Kind::Fifo).await;
    let id = sink.publish(outgoing("body")).await.expect("published");
    let got = foreign(server, &name, 1).await.pop().expect("one");
    assert_eq!((got.group.as_deref(), &got.id), (Some(id.as_str()), &id));
    rocketmq.close().await;
}
