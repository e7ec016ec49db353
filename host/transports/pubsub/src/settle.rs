//! Settling many at once, where what is said of each is looked at (FR-34).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::{join, join_all};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, ModifyAckDeadlineRequest,
};
use pumphouse_contract::Receipt;
use pumphouse_contract::ports::{Action, Failure, Settlement, Unsettled};
use tonic_types::StatusExt;

use crate::Pubsub;
use crate::calls::{Fault, Kind, bounded};

/// The most entries of one settlement.
pub(crate) const BATCH: usize = 1_000;

/// The most bytes of the ids of one request, which may have 512 KiB. An id has about 200 bytes, and more where
/// delivery is exactly once.
const BATCH_BYTES: usize = 480 * 1_024;

/// What an id takes beside its own bytes.
const ID_FRAME: usize = 4;

/// The longest delay, and the longest extension.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// How an exactly-once subscription says that an id is no longer ours.
const LOST: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";

/// How it begins to say that asking again won't help.
const PERMANENT: &str = "PERMANENT_FAILURE_";

/// Settles the deliveries of one subscription.
#[derive(Clone)]
pub(crate) struct Settler {
    pub(crate) pubsub: Pubsub,
    /// The full name.
    pub(crate) subscription: String,
}

/// Why an id was not settled.
pub(crate) type Refusal = (Failure, String);

impl Settler {
    /// Settles each, and answers for each in their order.
    pub(crate) async fn settle(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        let (mut acks, mut releases) = (Vec::new(), BTreeMap::<u64, Vec<&Receipt>>::new());
        for Settlement { receipt, action } in &batch {
            match *action {
                Action::Ack => acks.push(receipt),
                Action::Release(after) => releases.entry(seconds(after)).or_default().push(receipt),
            }
        }
        let acks = join_all(parts(acks).into_iter().map(|part| self.acknowledge(part)));
        let releases = join_all(releases.into_iter().flat_map(|(seconds, receipts)| {
            parts(receipts).into_iter().map(move |part| self.modify(ids(&part), seconds))
        }));
        let (acks, releases) = join(acks, releases).await;
        let refusals: HashMap<String, Refusal> =
            acks.into_iter().chain(releases).flatten().collect();
        if refusals.is_empty() {
            return batch.iter().map(|_| Ok(())).collect();
        }
        let one = |settlement: Settlement| {
            let refusal = refusals.get(&*settlement.receipt.as_text()).cloned();
            match refusal {
                None => Ok(()),
                Some((failure, text)) => Err(Unsettled { settlement, failure, text }),
            }
        };
        batch.into_iter().map(one).collect()
    }

    /// Acknowledges, in one request. What is not named in the answer was done.
    async fn acknowledge(&self, receipts: Vec<&Receipt>) -> HashMap<String, Refusal> {
        let call = async {
            let subscription = self.subscription.clone();
            let message = AcknowledgeRequest { subscription, ack_ids: ids(&receipts) };
            let request =
                self.pubsub.request(message, ("subscription", &self.subscription)).await?;
            bounded(self.pubsub.timeouts.settle, self.pubsub.work().acknowledge(request)).await
        };
        // Nearly always there is nothing to look up, and the ids are not needed again.
        call.await.err().map_or_else(HashMap::new, |fault| refusals(&ids(&receipts), fault))
    }

    /// Sets how long messages stay away, in one request and in this order: 0 gives them back at once. What is
    /// not named in the answer was done.
    pub(crate) async fn modify(&self, ids: Vec<String>, seconds: u64) -> HashMap<String, Refusal> {
        let call = async {
            let message = ModifyAckDeadlineRequest {
                subscription: self.subscription.clone(),
                ack_ids: ids.clone(),
                ack_deadline_seconds: i32::try_from(seconds).unwrap_or(i32::MAX),
            };
            let request =
                self.pubsub.request(message, ("subscription", &self.subscription)).await?;
            let mut client = self.pubsub.work();
            bounded(self.pubsub.timeouts.settle, client.modify_ack_deadline(request)).await
        };
        call.await.err().map_or_else(HashMap::new, |fault| refusals(&ids, fault))
    }
}

/// Receipts in their order, in as few requests as take them.
fn parts(receipts: Vec<&Receipt>) -> Vec<Vec<&Receipt>> {
    let (mut parts, mut bytes) = (Vec::<Vec<&Receipt>>::new(), 0);
    for receipt in receipts {
        let size = receipt.0.len() + ID_FRAME;
        match parts.last_mut() {
            Some(part) if part.len() < BATCH && bytes + size <= BATCH_BYTES => {
                bytes += size;
                part.push(receipt);
            }
            _ => {
                bytes = size;
                parts.push(vec![receipt]);
            }
        }
    }
    parts
}

fn ids(receipts: &[&Receipt]) -> Vec<String> {
    receipts.iter().copied().map(ack_id).collect()
}

pub(crate) fn ack_id(receipt: &Receipt) -> String {
    receipt.as_text().into_owned()
}

/// A delay in whole seconds, rounded up, and no longer than Pub/Sub takes.
pub(crate) fn seconds(after: Duration) -> u64 {
    let whole = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
    whole.min(LONGEST_DELAY.as_secs())
}

/// What became of each id of a request that failed. Where the answer names some, the others were done.
fn refusals(ids: &[String], fault: Fault) -> HashMap<String, Refusal> {
    let named = fault.status.as_ref().and_then(|status| status.get_details_error_info());
    if let Some(info) = named.filter(|info| ids.iter().any(|id| info.metadata.contains_key(id))) {
        return info
            .metadata
            .into_iter()
            .filter(|(id, _)| ids.contains(id))
            .map(|(id, why)| (id, (of_reason(&why), why)))
            .collect();
    }
    let failure = match fault.kind {
        Kind::Unavailable | Kind::Throttled => Failure::Retry,
        // A subscription that is gone took its deliveries with it.
        Kind::Missing => Failure::Gone,
        Kind::Denied | Kind::Sender => Failure::Refused,
    };
    ids.iter().map(|id| (id.clone(), (failure, fault.text.clone()))).collect()
}

fn of_reason(why: &str) -> Failure {
    match why {
        LOST => Failure::Gone,
        _ if why.starts_with(PERMANENT) => Failure::Refused,
        _ => Failure::Retry,
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
