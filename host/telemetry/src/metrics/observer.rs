//! Records what one pump saw.

use pumphouse_contract::Reason;
use pumphouse_contract::ports::{Event, Observer};

use super::Subscription;
use super::calls::{Calls, Deliveries};
use super::families::{Families, Labels};
use super::requests::{Copies, Receives, Settlements};
use super::series::with;
use crate::names::labels;

/// Every reason.
pub(crate) const REASONS: [Reason; 3] = [Reason::Unacceptable, Reason::DeliveryError, Reason::None];

/// The series of one subscription.
pub(crate) struct Recorder {
    receives: Receives,
    deliveries: Deliveries,
    calls: Calls,
    copies: Copies,
    settlements: Settlements,
}

impl Recorder {
    pub(crate) fn new(families: &Families, subscription: Subscription<'_>) -> Self {
        let ours = ours(subscription);
        let operation = |name| operation(&ours, subscription, name);
        Self {
            receives: Receives::new(families, &ours, &operation("receive")),
            deliveries: Deliveries::new(families, &ours),
            calls: Calls::new(families, &ours, &operation("process")),
            copies: Copies::new(families, &ours, &operation("send")),
            settlements: Settlements::new(families, &ours, &operation("settle")),
        }
    }
}

impl Observer for Recorder {
    fn record(&self, event: Event<'_>) {
        match event {
            Event::Received { messages, took } => self.receives.answered(messages, took),
            Event::ReceiveFailed { kind, took } => self.receives.failed(kind, took),
            Event::ReceiveStalled => self.receives.stalled(),
            Event::Handled { decision, fault, count, took, usage } => {
                self.deliveries.handled(decision, count);
                self.calls.ended(fault, took, usage);
            }
            Event::Turned { reason } => self.deliveries.turned(reason),
            Event::Duplicate => self.deliveries.duplicate(),
            Event::GivenBack => self.deliveries.given_back(),
            Event::DelayShortened => self.settlements.shortened(),
            Event::Routed { to, reason, took } => self.copies.routed(to, reason, took),
            Event::RouteFailed { to, reason } => self.copies.failed(to, reason),
            Event::Discarded { reason } => self.copies.discarded(reason),
            Event::Settled { action, failure, took } => {
                self.settlements.ended(action, failure, took);
            }
            Event::Began | Event::CopyRead => {}
        }
    }
}

/// What every series of a subscription is labelled with.
fn ours(Subscription { name, tenant, handler, .. }: Subscription<'_>) -> Labels {
    with(
        &Labels::new(),
        [(labels::SUBSCRIPTION, name), (labels::TENANT, tenant), (labels::HANDLER, handler)],
    )
}

/// What OpenTelemetry's are labelled with besides.
fn operation(ours: &Labels, subscription: Subscription<'_>, name: &str) -> Labels {
    with(
        ours,
        [
            (labels::SYSTEM, subscription.system),
            (labels::SOURCE, subscription.source),
            (labels::OPERATION, name),
        ],
    )
}
