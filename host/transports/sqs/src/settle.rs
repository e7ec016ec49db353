//! Settling in batches, where every entry of an answer is looked at (FR-34).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
};
use futures_util::future::{join, join_all};
use pumphouse_contract::ports::{Action, Failure, Settlement, Unsettled};
use pumphouse_contract::{Clock, Mono};

use crate::calls::{Fault, Kind, bounded, classify, said};
use crate::receipt;
use crate::source::{BATCH, LONGEST_LEASE, at_most, whole_seconds};

/// For the way of a request to SQS, which counts its 12 hours when the request arrives.
const TRAVEL: Duration = Duration::from_secs(1);

/// Settles the deliveries of one queue.
pub(crate) struct Settler {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) limit: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why an entry was not settled.
type Refusal = (Failure, String);

/// What became of one batch, by the position in what was asked. What is not named was done.
type Refusals = HashMap<usize, Refusal>;

/// A receipt handle, and the position in what was asked.
type Entry<'a> = (usize, &'a str);

impl Settler {
    /// Settles each, and answers for each in their order.
    pub(crate) async fn settle(&self, batch: Vec<Settlement>) -> Vec<Result<(), Unsettled>> {
        let mut refusals = self.ask(&batch).await;
        let one = |(at, settlement)| match refusals.remove(&at) {
            None => Ok(()),
            Some((failure, text)) => Err(Unsettled { settlement, failure, text }),
        };
        batch.into_iter().enumerate().map(one).collect()
    }

    async fn ask(&self, batch: &[Settlement]) -> Refusals {
        let now = self.clock.mono();
        let (mut acks, mut releases, mut refusals) = (Vec::new(), Vec::new(), Refusals::new());
        for (at, settlement) in batch.iter().enumerate() {
            match (receipt::open(&settlement.receipt), settlement.action) {
                (Some((_, handle)), Action::Ack) => acks.push((at, handle)),
                (Some((received, handle)), Action::Release(after)) => {
                    releases.push(((at, handle), visible_in(after, received, now)));
                }
                (None, _) => {
                    refusals.insert(at, (Failure::Refused, "the receipt is not of SQS".into()));
                }
            }
        }
        let deletes = join_all(acks.chunks(BATCH).map(|chunk| self.delete(chunk)));
        let changes = join_all(releases.chunks(BATCH).map(|chunk| self.change(chunk)));
        let (deletes, changes) = join(deletes, changes).await;
        refusals.extend(deletes.into_iter().chain(changes).flatten());
        refusals
    }

    async fn delete(&self, batch: &[Entry<'_>]) -> Refusals {
        let entries: Result<Vec<_>, _> = batch.iter().map(|entry| delete_entry(*entry)).collect();
        let positions = positions(batch.iter());
        let call = self
            .client
            .delete_message_batch()
            .queue_url(&self.url)
            .set_entries(entries.ok())
            .send();
        match bounded(self.limit, call).await {
            Ok(answer) => {
                let done = answer.successful.iter().map(|entry| entry.id.as_str());
                refusals(&positions, done, &answer.failed)
            }
            Err(fault) => all(&positions, &fault),
        }
    }

    async fn change(&self, batch: &[(Entry<'_>, u64)]) -> Refusals {
        let entries: Result<Vec<_>, _> =
            batch.iter().map(|(entry, seconds)| change_entry(*entry, *seconds)).collect();
        let positions = positions(batch.iter().map(|(entry, _)| entry));
        let call = self
            .client
            .change_message_visibility_batch()
            .queue_url(&self.url)
            .set_entries(entries.ok())
            .send();
        match bounded(self.limit, call).await {
            Ok(answer) => {
                let done = answer.successful.iter().map(|entry| entry.id.as_str());
                refusals(&positions, done, &answer.failed)
            }
            Err(fault) => all(&positions, &fault),
        }
    }
}

fn delete_entry(
    (at, handle): Entry<'_>,
) -> Result<DeleteMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    DeleteMessageBatchRequestEntry::builder().id(at.to_string()).receipt_handle(handle).build()
}

fn change_entry(
    (at, handle): Entry<'_>,
    seconds: u64,
) -> Result<ChangeMessageVisibilityBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    ChangeMessageVisibilityBatchRequestEntry::builder()
        .id(at.to_string())
        .receipt_handle(handle)
        .visibility_timeout(at_most(seconds))
        .build()
}

fn positions<'a>(entries: impl Iterator<Item = &'a Entry<'a>>) -> Vec<usize> {
    entries.map(|(at, _)| *at).collect()
}

/// The delay in whole seconds, rounded up, within what is left of the 12 hours since the receive (FR-32).
fn visible_in(after: Duration, received: Mono, now: Mono) -> u64 {
    let gone = now.since(received).saturating_add(TRAVEL);
    let left = LONGEST_LEASE.as_secs().saturating_sub(whole_seconds(gone));
    whole_seconds(after).min(left)
}

/// What an answer says about each entry. One that it does not mention is asked again.
fn refusals<'a>(
    asked: &[usize],
    done: impl Iterator<Item = &'a str>,
    failed: &[BatchResultErrorEntry],
) -> Refusals {
    let position = |id: &str| id.parse::<usize>().ok();
    let unmentioned = "the answer does not mention the entry";
    let mut refusals: Refusals =
        asked.iter().map(|at| (*at, (Failure::Retry, unmentioned.to_owned()))).collect();
    for at in done.filter_map(position) {
        refusals.remove(&at);
    }
    for entry in failed {
        let Some(refusal) = position(entry.id()).and_then(|at| refusals.get_mut(&at)) else {
            continue;
        };
        *refusal = refusal_of(entry);
    }
    refusals
}

fn refusal_of(entry: &BatchResultErrorEntry) -> Refusal {
    let message = entry.message().unwrap_or_default();
    let failure = match classify(entry.code(), message) {
        Kind::Sender if !entry.sender_fault() => Failure::Retry,
        kind => failure(kind),
    };
    (failure, said(entry.code(), message))
}

/// A request that fails as a whole fails for each of its entries.
fn all(asked: &[usize], fault: &Fault) -> Refusals {
    asked.iter().map(|at| (*at, (failure(fault.kind), fault.text.clone()))).collect()
}

fn failure(kind: Kind) -> Failure {
    match kind {
        Kind::Unavailable | Kind::Throttled => Failure::Retry,
        // A queue that is gone took its messages with it.
        Kind::Gone | Kind::Missing => Failure::Gone,
        Kind::Denied | Kind::Sender => Failure::Refused,
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
