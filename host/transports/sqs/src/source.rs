use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::{Message as SqsMessage, MessageSystemAttributeName};
use pumphouse_contract::ports::{
    Action, Ask, BoxFuture, Capabilities, Counter, LeaseSetting, Ordering, ReceiveError,
    Settlement, Source, Unsettled,
};
use pumphouse_contract::{Clock, Delivery, Lease};

use crate::calls::{Fault, Kind, bounded};
use crate::incoming::{Lacking, Reading, delivery, lacking};
use crate::name::queue_name;
use crate::settle::Settler;
use crate::{SourceSpec, Sqs, Timeouts, receipt};

/// The most messages of one receive, and the most entries of one settlement.
pub(crate) const BATCH: usize = 10;

const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The longest lease, and how long after its receive a message can be kept back at all.
pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(12 * 60 * 60);

/// A full batch of settlements is rare; this is how long one waits to become one.
const LINGER: Duration = Duration::from_millis(5);

/// What is read of a message beside its body and its own attributes. The rest of `All` would travel, and be parsed,
/// for nothing.
const READ: [MessageSystemAttributeName; 5] = [
    MessageSystemAttributeName::ApproximateReceiveCount,
    MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
    MessageSystemAttributeName::SentTimestamp,
    MessageSystemAttributeName::MessageGroupId,
    MessageSystemAttributeName::AwsTraceHeader,
];

/// One queue, read.
pub(crate) struct SqsSource {
    polls: aws_sdk_sqs::Client,
    settler: Settler,
    queue: String,
    url: String,
    reading: Reading,
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    capabilities: Capabilities,
}

impl SqsSource {
    pub(crate) fn new(sqs: &Sqs, spec: &SourceSpec, url: String, clock: Arc<dyn Clock>) -> Self {
        Self {
            polls: sqs.polls.clone(),
            settler: Settler {
                client: sqs.work.clone(),
                url: url.clone(),
                limit: sqs.timeouts.settle,
                clock: Arc::clone(&clock),
            },
            capabilities: capabilities(queue_name(&spec.queue).ends_with(".fifo")),
            queue: spec.queue.clone(),
            url,
            reading: spec.into(),
            timeouts: sqs.timeouts,
            clock,
        }
    }

    async fn poll(&self, ask: Ask) -> Result<Vec<Delivery>, ReceiveError> {
        let wait = ask.wait.min(LONGEST_WAIT);
        let visible_after = whole_seconds(ask.lease.clamp(Duration::from_secs(1), LONGEST_LEASE));
        let before = self.clock.mono();
        let call = self
            .polls
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(at_most(ask.max.clamp(1, BATCH)))
            .wait_time_seconds(at_most(wait.as_secs()))
            .visibility_timeout(at_most(visible_after))
            .set_message_system_attribute_names(Some(READ.to_vec()))
            .message_attribute_names("All")
            .send();
        let answer = bounded(wait + self.timeouts.poll_margin, call)
            .await
            .map_err(|fault| receive_error(&self.queue, fault))?;
        let messages = answer.messages.unwrap_or_default();
        if messages.is_empty() && wait.as_secs() == 0 {
            // SQS waits whole seconds; the pump must not ask all the time where it wants to wait for less.
            tokio::time::sleep(wait).await;
        }
        let lease = Lease::from(before, Duration::from_secs(visible_after));
        self.deliver(messages, lease).await
    }

    async fn deliver(
        &self,
        messages: Vec<SqsMessage>,
        lease: Lease,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        if let Some(lacking) = messages.iter().find_map(lacking) {
            self.give_back(&messages, lease).await;
            return Err(lacking_error(&self.queue, lacking));
        }
        Ok(messages.into_iter().map(|it| delivery(it, lease, self.reading)).collect())
    }

    /// Best effort: what is not given back comes back when its lease lapses.
    async fn give_back(&self, messages: &[SqsMessage], lease: Lease) {
        let batch: Vec<Settlement> = messages
            .iter()
            .filter_map(SqsMessage::receipt_handle)
            .map(|handle| Settlement {
                receipt: receipt::seal(lease.received, handle),
                action: Action::Release(Duration::ZERO),
            })
            .collect();
        let left = self.settler.settle(batch).await.into_iter().filter(Result::is_err).count();
        if left > 0 {
            tracing::warn!(queue = %self.queue, messages = left, "messages could not be given back");
        }
    }
}

impl Source for SqsSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.poll(ask))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        Box::pin(self.settler.settle(batch))
    }

    /// Connections are shared with other queues and are closed with the last of them.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a standard queue can do. A FIFO queue also keeps order among the messages of one group, and one receive
/// may bring several of them.
pub const CAPABILITIES: Capabilities = Capabilities {
    system: "aws_sqs",
    receive_batch: BATCH,
    settle_batch: BATCH,
    settle_linger: LINGER,
    receive_linger: LINGER,
    longest_wait: LONGEST_WAIT,
    longest_delay: LONGEST_LEASE,
    delay_counts_from_receive: true,
    longest_lease: LONGEST_LEASE,
    lease_setting: LeaseSetting::OnReceive,
    undispatched_release_counts: true,
    counter: Counter::Approximate,
    count_advances: true,
    ordering: Ordering::None,
    batch_may_hold_followers: false,
};

fn capabilities(fifo: bool) -> Capabilities {
    let ordering = if fifo { Ordering::Key } else { Ordering::None };
    Capabilities { ordering, batch_may_hold_followers: fifo, ..CAPABILITIES }
}

/// Seconds as SQS takes them, rounded up.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// A number of which it is known that it is small, as the SDK takes it.
pub(crate) fn at_most(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

fn receive_error(queue: &str, fault: Fault) -> ReceiveError {
    let (queue, text) = (queue.to_owned(), fault.text);
    match fault.kind {
        Kind::Unavailable | Kind::Throttled => ReceiveError::Unavailable(queue, text),
        Kind::Missing => ReceiveError::Missing(queue, text),
        Kind::Denied => ReceiveError::Denied(queue, text),
        Kind::Gone | Kind::Sender => ReceiveError::Other(queue, text),
    }
}

fn lacking_error(queue: &str, lacking: Lacking) -> ReceiveError {
    let queue = queue.to_owned();
    match lacking {
        Lacking::Count => {
            let text = "the answer has a message without ApproximateReceiveCount".to_owned();
            ReceiveError::CounterMissing(queue, text)
        }
        Lacking::Identity => {
            let text = "the answer has a message without an id or a receipt handle".to_owned();
            ReceiveError::Other(queue, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        let table = [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (43_200_000, 43_200)];
        for (millis, seconds) in table {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }
}
