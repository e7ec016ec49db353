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

use crate::calls::{Fault, Meaning, SUCCESS, is_unsent, millis};
use crate::capabilities::{LONGEST_DELAY, SETTLE};
use crate::doubts::Doubts;
use crate::receipt::Receipt;
use crate::routes::Routes;
use crate::{Kind, Rocketmq};

/// NO_MESSAGE: the store has none at that offset any more.
const NO_MESSAGE: i32 = 208;

/// SERVICE_NOT_AVAILABLE.
const NOT_NOW: i32 = 14;

/// What a release that can't be asked is told with.
const OVER: &str = "the lease is over, so the message comes again by itself";
const TWICE: &str = "a release was sent and not confirmed: sent twice, the message would come twice. It comes again \
    when its lease is over";

/// Settles the deliveries of one group and topic.
///
/// An acknowledgement may be repeated. A release of a normal topic's message may not: the broker stores it anew for
/// each that it gets, whether the receipt is good or not, and hands it out as often. So one is sent for a lease, and
/// none after it.
pub(crate) struct Settler {
    pub(crate) rocketmq: Rocketmq,
    /// This and the group as they are on the wire.
    pub(crate) topic: String,
    pub(crate) group: String,
    pub(crate) kind: Kind,
    pub(crate) routes: Arc<Routes>,
    /// Receipts whose release was sent and not answered.
    pub(crate) doubts: Doubts,
}

/// A request that was not answered with success.
struct Failed {
    failure: Failure,
    text: String,
    /// Whether the broker may have done it all the same.
    doubtful: bool,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let failure = failure(&fault);
        // What the broker refuses by name it did not do; what it calls its own failure it may have done.
        let known = fault.code.is_some_and(|code| {
            fault.meaning != Meaning::Unavailable || [NOT_NOW, NO_MESSAGE].contains(&code)
        });
        Self { failure, text: fault.text, doubtful: !known }
    }
}

impl Failed {
    fn gone(text: &str) -> Self {
        Self { failure: Failure::Gone, text: text.to_owned(), doubtful: false }
    }

    fn unsent(fault: Fault) -> Self {
        Self { doubtful: false, ..fault.into() }
    }
}

impl Settler {
    /// Settles each, up to 32 at once, and answers for each in their order.
    pub(crate) async fn settle(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        stream::iter(batch).map(|settlement| self.one(settlement)).buffered(SETTLE).collect().await
    }

    async fn one(&self, settlement: Settlement) -> Result<(), Unsettled> {
        let text = settlement.receipt.as_text();
        let result = match (Receipt::read(&text), settlement.action) {
            (None, _) => Err(Failed {
                failure: Failure::Refused,
                text: "the receipt is none of rocketmq's".to_owned(),
                doubtful: false,
            }),
            (Some(receipt), Action::Ack) => self.send(receipt, Action::Ack).await,
            (Some(receipt), Action::Release(after)) => self.release(receipt, after).await,
        };
        drop(text);
        result.map_err(|Failed { failure, text, .. }| Unsettled { settlement, failure, text })
    }

    async fn release(&self, receipt: Receipt<'_>, after: Duration) -> Result<(), Failed> {
        let action = Action::Release(after);
        if receipt.until.is_some_and(|until| until <= self.rocketmq.clock.mono()) {
            return Err(Failed::gone(OVER));
        }
        if self.kind == Kind::Fifo {
            return self.send(receipt, action).await;
        }
        // It stays in doubt where this call is given up.
        if !self.doubts.add(receipt.theirs) {
            return Err(Failed::gone(TWICE));
        }
        let result = self.send(receipt, action).await;
        match result {
            Err(Failed { doubtful: true, text, .. }) => Err(Failed {
                failure: Failure::Gone,
                text: format!("{text}; {TWICE}"),
                doubtful: true,
            }),
            known => {
                self.doubts.remove(receipt.theirs);
                known
            }
        }
    }

    async fn send(&self, receipt: Receipt<'_>, action: Action) -> Result<(), Failed> {
        let broker = self.routes.broker(receipt.broker).await.map_err(Failed::unsent)?;
        self.routes.reach(&broker).await.map_err(Failed::unsent)?;
        let handle = self.rocketmq.lease().map_err(Failed::unsent)?;
        let limit = self.rocketmq.timeouts.settle;
        let call =
            handle.invoke_remoting(&broker.address, self.request(receipt, action), millis(limit));
        let failed = match tokio::time::timeout(limit, call).await {
            Ok(Ok(answer)) if answer.code() == SUCCESS => return Ok(()),
            Ok(Ok(answer)) => return Err(Fault::of(&answer).into()),
            Ok(Err(error)) if is_unsent(&error) => Failed::unsent(error.into()),
            Ok(Err(error)) => Fault::from(error).into(),
            Err(_) => Fault::unavailable(format!("no answer within {limit:?}")).into(),
        };
        // It may have been started elsewhere.
        self.routes.failed(&broker);
        Err(failed)
    }

    fn request(&self, receipt: Receipt<'_>, action: Action) -> RemotingCommand {
        let Receipt { theirs, place, queue: queue_id, offset, .. } = receipt;
        let topic: CheetahString = place.name(&self.topic, &self.group).into();
        let consumer_group = CheetahString::from_slice(&self.group);
        let extra_info = CheetahString::from_slice(theirs);
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
