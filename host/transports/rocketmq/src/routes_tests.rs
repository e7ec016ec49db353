use rocketmq_protocol::protocol::route::route_data_view::{BrokerData, QueueData};

use super::*;

fn queues(name: &str, read: u32, perm: u32) -> QueueData {
    QueueData::new(name.into(), read, 8, perm, 0)
}

fn broker(name: &str, ids: &[u64]) -> BrokerData {
    let addresses = ids.iter().map(|id| (*id, format!("{name}:{id}").into())).collect();
    BrokerData::new("cluster".into(), name.into(), addresses, None)
}

/// The masters that have a queue to read, in an order of their own.
#[test]
fn a_route_names_the_brokers_to_read_from() {
    let route = TopicRouteData {
        queue_datas: vec![
            queues("b", 8, 6),
            queues("a", 1, 4),
            queues("write-only", 8, 2),
            queues("no-queue", 0, 6),
            queues("copy-only", 8, 6),
        ],
        broker_datas: vec![
            broker("b", &[0, 1]),
            broker("a", &[0]),
            broker("write-only", &[0]),
            broker("no-queue", &[0]),
            broker("copy-only", &[1]),
            broker("elsewhere", &[0]),
        ],
        ..TopicRouteData::default()
    };
    let brokers = readable(&route);
    let brokers: Vec<_> =
        brokers.iter().map(|it| (it.name.as_str(), it.address.as_str())).collect();
    assert_eq!(brokers, [("a", "a:0"), ("b", "b:0")]);
    assert!(readable(&TopicRouteData::default()).is_empty());
}
