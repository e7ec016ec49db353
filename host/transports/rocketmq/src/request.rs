//! One request to one broker, or to the name server, that succeeds or not.

use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::protocol::route::topic_route_data::TopicRouteData;

use crate::Rocketmq;
use crate::calls::{Fault, Meaning, SUCCESS, bounded, exchange, millis};

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
    let handle = rocketmq.lease()?;
    match bounded(limit, handle.topic_route(topic, millis(limit))).await {
        Err(fault) if fault.meaning == Meaning::Missing => Ok(None),
        answer => answer,
    }
}
