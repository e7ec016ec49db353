//! One request to one broker that succeeds or not.

use std::time::Duration;

use cheetah_string::CheetahString;
use rocketmq_protocol::RemotingCommand;

use crate::Rocketmq;
use crate::calls::{Fault, SUCCESS, exchange};

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
