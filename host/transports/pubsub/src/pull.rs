//! One `Pull` after another.

use std::sync::Arc;
use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PullRequest, ReceivedMessage};
use pumphouse_contract::ports::{
    Action, Ask, BoxFuture, Capabilities, Ordering, ReceiveError, Settlement, Source, Unsettled,
};
use pumphouse_contract::{Clock, Delivery, Lease};
use tokio::time::Instant;
use tonic::Code;

use crate::calls::{Fault, Kind, bounded};
use crate::incoming::{Reading, delivery};
use crate::provision::Channelled;
use crate::settle::Settler;
use crate::{Pubsub, SourceSpec, capabilities};

/// How long a released head of a key stays away at least. Where it is free at once, the emulator gives out the one
/// behind it first; while it is away its key is blocked.
pub(crate) const SHORTEST_ORDERED_DELAY: Duration = Duration::from_secs(1);

/// How much earlier than a call's deadline the emulator ends a wait by itself, with an empty answer. A wait that we ended could lease a message to nobody, whose delivery would count all the same.
/// That remains possible for a message that arrives when an answer takes longer than this on its way.
const ENDS_EARLY: Duration = Duration::from_secs(1);

/// How long a wait goes on at most that the service ended early, so that nobody asks without a pause.
const PAUSE: Duration = Duration::from_millis(100);

/// A subscription that is asked.
pub(crate) struct PullSource {
    settler: Settler,
    clock: Arc<dyn Clock>,
    /// The subscription's acknowledgement deadline.
    lease: Duration,
    reading: Reading,
    capabilities: Capabilities,
}

impl PullSource {
    pub(crate) fn new(pubsub: &Pubsub, spec: &SourceSpec, found: Channelled) -> Self {
        let capabilities = capabilities(spec.mode, spec.ordered);
        Self {
            settler: Settler {
                subscription: pubsub.subscription(&spec.subscription),
                pubsub: pubsub.clone(),
            },
            clock: pubsub.clock.clone(),
            lease: found.ack_deadline,
            reading: Reading { rejected: spec.rejected },
            capabilities: Capabilities { count_advances: found.counts, ..capabilities },
        }
    }

    async fn poll(&self, ask: Ask) -> Result<Vec<Delivery>, ReceiveError> {
        let subscription = &self.settler.subscription;
        let wait = ask.wait.min(self.capabilities.longest_wait);
        let begun = Instant::now();
        let before = self.clock.mono();
        let received = match self.ask(ask.max, wait).await {
            Ok(received) => received,
            Err(fault) if is_end_of_wait(&fault) && !wait.is_zero() => {
                // The deadline is kept on our side too, so the service may not have answered at all (FR-33).
                let there = self.settler.pubsub.confirm(subscription).await;
                there.map_err(|fault| receive_error(subscription, fault))?;
                Vec::new()
            }
            Err(fault) => return Err(receive_error(subscription, fault)),
        };
        if received.is_empty() {
            let left = wait.saturating_sub(begun.elapsed());
            tokio::time::sleep(left.min(PAUSE)).await;
        }
        let lease = Lease::from(before, self.lease);
        Ok(received.into_iter().map(|one| delivery(one, lease, self.reading)).collect())
    }

    async fn ask(&self, max: usize, wait: Duration) -> Result<Vec<ReceivedMessage>, Fault> {
        let Settler { pubsub, subscription } = &self.settler;
        // With one, the service itself keeps a key's next message back.
        let max = if self.is_ordered() { 1 } else { max.max(1) };
        #[expect(
            deprecated,
            reason = "how one looks without waiting; it is set where no wait is asked for"
        )]
        let message = PullRequest {
            subscription: subscription.clone(),
            return_immediately: wait.is_zero(),
            max_messages: i32::try_from(max).unwrap_or(i32::MAX),
        };
        let mut request = pubsub.request(message, ("subscription", subscription)).await?;
        if !wait.is_zero() {
            request.set_timeout(wait + ENDS_EARLY);
        }
        let limit = wait + pubsub.timeouts.poll_margin;
        let answer = bounded(limit, pubsub.polls().pull(request)).await?;
        Ok(answer.received_messages)
    }

    fn is_ordered(&self) -> bool {
        self.capabilities.ordering == Ordering::Key
    }
}

/// With no delay that would let another message of the key go first.
pub(crate) fn in_order(settlement: Settlement) -> Settlement {
    let action = match settlement.action {
        Action::Ack => Action::Ack,
        Action::Release(after) => Action::Release(after.max(SHORTEST_ORDERED_DELAY)),
    };
    Settlement { action, ..settlement }
}

/// How a pull ends that found nothing.
fn is_end_of_wait(fault: &Fault) -> bool {
    let code = fault.status.as_ref().map(|status| status.code());
    matches!(code, Some(Code::DeadlineExceeded | Code::Cancelled))
}

pub(crate) fn receive_error(subscription: &str, fault: Fault) -> ReceiveError {
    let (source, text) = (subscription.to_owned(), fault.text);
    match fault.kind {
        Kind::Unavailable | Kind::Throttled => ReceiveError::Unavailable(source, text),
        Kind::Missing => ReceiveError::Missing(source, text),
        Kind::Denied => ReceiveError::Denied(source, text),
        Kind::Sender => ReceiveError::Other(source, text),
    }
}

impl Source for PullSource {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.poll(ask))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>> {
        let batch =
            if self.is_ordered() { batch.into_iter().map(in_order).collect() } else { batch };
        Box::pin(self.settler.settle(batch))
    }

    // No `interrupt`: a pull that is cut may have leased a message. A pump's waits are short.

    /// Connections are shared with other subscriptions and are closed with the last of them.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
