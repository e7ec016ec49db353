//! One request to one broker, or to the name server, that succeeds or not.

use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::protocol::body::broker_body::cluster_info::ClusterInfo;
use rocketmq_protocol::protocol::route::topic_route_data::TopicRouteData;

use crate::Rocketmq;
use crate::calls::{Fault, Meaning, SUCCESS, bounded, exchange, millis};

/// How the name server is called, which the client chooses itself.
const NAME_SERVER: CheetahString = CheetahString::from_static_str("name server");

/// Asks a broker, `host:port`. Any answer but success is a fault, with the broker's code and words.
pub(crate) async fn ask(
    rocketmq: &Rocketmq,
    broker: &CheetahString,
    request: RemotingCommand,
    limit: Duration,
) -> Result<RemotingCommand, Fault> {
    let answer = exchange(rocketmq, broker, request, limit).await?;
    if answer.code() == SUCCESS { Ok(answer) } else { Err(Fault::of(&answer)) }
}

/// Asks the name server for the route of a topic; none where it has none.
pub(crate) async fn route(
    rocketmq: &Rocketmq,
    topic: &CheetahString,
    limit: Duration,
) -> Result<Option<TopicRouteData>, Fault> {
    let (handle, topic) = (rocketmq.lease()?, topic.clone());
    let asking = async move { handle.topic_route(&topic, millis(limit)).await };
    match bounded(rocketmq, &NAME_SERVER, limit, asking).await {
        Err(fault) if fault.meaning == Meaning::Missing => Ok(None),
        answer => answer,
    }
}

/// Asks the name server which brokers there are.
pub(crate) async fn cluster(rocketmq: &Rocketmq, limit: Duration) -> Result<ClusterInfo, Fault> {
    let handle = rocketmq.lease()?;
    let asking = async move { handle.broker_cluster_info(millis(limit)).await };
    bounded(rocketmq, &NAME_SERVER, limit, asking).await
}
