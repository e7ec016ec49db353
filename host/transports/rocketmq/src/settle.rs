//! Settling many at once, each with a request of its own whose answer is looked at (FR-34).

use std::sync::Arc;
use std::time::Duration;

use cheetah_string::CheetahString;
use futures_util::stream::{self, StreamExt};
use pumphouse_contract::ports::{Action, Failure, Settlement, Unsettled};
use rocketmq_protocol::code::request_code::RequestCode;
use rocketmq_protocol::protocol::header::ack_message_request_header::AckMessageRequestHeader;
use rocketmq_protocol::protocol::header::change_invisible_time_request_header::ChangeInvisibleTimeRequestHeader;
use rocketmq_protocol::protocol::remoting_command::RemotingCommand;

use crate::Rocketmq;
use crate::calls::{Fault, Meaning, SUCCESS, exchange};
use crate::capabilities::{LONGEST_DELAY, SETTLE};
use crate::receipt::Receipt;
use crate::routes::Routes;

/// NO_MESSAGE: the store has none at that offset any more.
const NO_MESSAGE: i32 = 208;

/// Settles the deliveries of one group and topic.
pub(crate) struct Settler {
    pub(crate) rocketmq: Rocketmq,
    /// This and the group as they are on the wire.
    pub(crate) topic: String,
    pub(crate) group: String,
    pub(crate) routes: Arc<Routes>,
}

impl Settler {
    /// Settles each, up to 32 at once, and answers for each in their order.
    pub(crate) async fn settle(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        stream::iter(batch).map(|settlement| self.one(settlement)).buffered(SETTLE).collect().await
    }

    async fn one(&self, settlement: Settlement) -> Result<(), Unsettled> {
        let text = settlement.receipt.as_text();
        let Some(receipt) = Receipt::read(&text) else {
            let text = "the receipt is none of rocketmq's".to_owned();
            return Err(Unsettled { settlement, failure: Failure::Refused, text });
        };
        let request = self.request(receipt, &text, settlement.action);
        let result = self.send(receipt.broker, request).await;
        drop(text);
        result.map_err(|fault| Unsettled { settlement, failure: failure(&fault), text: fault.text })
    }

    async fn send(&self, broker: &str, request: RemotingCommand) -> Result<(), Fault> {
        let address = self.routes.address(broker).await?;
        let limit = self.rocketmq.timeouts.settle;
        let answer = exchange(&self.rocketmq, &address, request, limit).await;
        // It may have been started elsewhere.
        let answer = answer.inspect_err(|_| self.routes.doubt())?;
        if answer.code() == SUCCESS { Ok(()) } else { Err(Fault::of(&answer)) }
    }

    fn request(&self, receipt: Receipt<'_>, text: &str, action: Action) -> RemotingCommand {
        let Receipt { place, queue: queue_id, offset, .. } = receipt;
        let topic: CheetahString = place.name(&self.topic, &self.group).into();
        let consumer_group = CheetahString::from_slice(&self.group);
        let extra_info = CheetahString::from_slice(text);
        match action {
            Action::Ack => RemotingCommand::create_request_command(
                RequestCode::AckMessage,
                AckMessageRequestHeader {
                    consumer_group,
                    topic,
                    queue_id,
                    extra_info,
                    offset,
                    lite_topic: None,
                    topic_request_header: None,
                },
            ),
            Action::Release(after) => RemotingCommand::create_request_command(
                RequestCode::ChangeMessageInvisibleTime,
                ChangeInvisibleTimeRequestHeader {
                    consumer_group,
                    topic,
                    queue_id,
                    extra_info,
                    offset,
                    invisible_time: delay(after),
                    ..ChangeInvisibleTimeRequestHeader::default()
                },
            ),
        }
    }
}

/// A delay in whole milliseconds, rounded up, and no longer than RocketMQ takes.
fn delay(after: Duration) -> i64 {
    let whole = after.min(LONGEST_DELAY).as_nanos().div_ceil(1_000_000);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

fn failure(fault: &Fault) -> Failure {
    match fault.meaning {
        _ if fault.code == Some(NO_MESSAGE) => Failure::Gone,
        Meaning::Unavailable | Meaning::Busy => Failure::Retry,
        // A topic or a group that is gone took its deliveries with it.
        Meaning::Missing => Failure::Gone,
        Meaning::Denied | Meaning::Refused => Failure::Refused,
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
