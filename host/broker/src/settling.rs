//! Settling deliveries: what a receipt says, and what becomes of the message.

use std::time::Duration;

use bytes::Bytes;
use pumphouse_contract::ports::{Action, Failure, Settlement, Unsettled};
use pumphouse_contract::{Mono, Receipt, Timestamp};

use crate::error::StoreError;
use crate::ledger::{Ledger, Sequence, Stale};
use crate::limits::LONGEST_DELAY;
use crate::store::{Span, Writing};

/// What a receipt names: one delivery of one message, by one opening of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Which opening. A receipt of an earlier process is good for nothing.
    pub(crate) opening: u32,
    pub(crate) count: u32,
    pub(crate) sequence: Sequence,
}

impl Claim {
    pub(crate) fn receipt(self) -> Receipt {
        let mut bytes = [0; 16];
        let number = (u128::from(self.opening) << 96)
            | (u128::from(self.count) << 64)
            | u128::from(self.sequence);
        bytes.copy_from_slice(&number.to_be_bytes());
        Receipt(Bytes::copy_from_slice(&bytes))
    }

    pub(crate) fn read(receipt: &Receipt) -> Option<Self> {
        let number = u128::from_be_bytes(receipt.0.as_ref().try_into().ok()?);
        Some(Self {
            opening: u32::try_from(number >> 96).ok()?,
            count: u32::try_from((number >> 64) & u128::from(u32::MAX)).ok()?,
            sequence: u64::try_from(number & u128::from(u64::MAX)).ok()?,
        })
    }
}

/// A delivery that is put aside for its settlement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    sequence: Sequence,
    ending: Ending,
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Remove,
    Release { delay: Duration, until: Option<Mono> },
}

impl Held {
    /// Puts the delivery of a settlement aside.
    fn hold(
        ledger: &mut Ledger,
        settlement: &Settlement,
        opening: u32,
        now: Mono,
    ) -> Result<Self, (Failure, String)> {
        let ending = ending(settlement.action, now)?;
        let claim = Claim::read(&settlement.receipt)
            .filter(|claim| claim.opening == opening)
            .ok_or_else(|| gone("the receipt is not of this broker"))?;
        match ledger.hold(claim.sequence, claim.count, now) {
            Ok(()) => Ok(Self { sequence: claim.sequence, ending }),
            Err(Stale::Gone) => Err(gone("the lease lapsed, or the delivery is settled")),
            Err(Stale::Pending) => {
                Err((Failure::Retry, "an earlier settlement has not ended".to_owned()))
            }
        }
    }

    /// Writes what becomes of the message.
    pub(crate) fn write(&self, writing: &Writing<'_>, now: Timestamp) -> rusqlite::Result<()> {
        match self.ending {
            Ending::Remove => writing.remove(self.sequence),
            Ending::Release { delay, .. } => {
                writing.release(self.sequence, Span { from: now, length: delay })
            }
        }
    }

    /// Makes it so.
    pub(crate) fn carry_out(&self, ledger: &mut Ledger) {
        match self.ending {
            Ending::Remove => ledger.remove(self.sequence),
            Ending::Release { until, .. } => ledger.release(self.sequence, until),
        }
    }

    /// Leaves everything as it was.
    pub(crate) fn undo(&self, ledger: &mut Ledger) {
        ledger.unhold(self.sequence);
    }
}

fn gone(why: &str) -> (Failure, String) {
    (Failure::Gone, why.to_owned())
}

fn ending(action: Action, now: Mono) -> Result<Ending, (Failure, String)> {
    match action {
        Action::Ack => Ok(Ending::Remove),
        Action::Release(delay) if delay > LONGEST_DELAY => {
            Err((Failure::Refused, format!("a delay of {delay:?} is longer than seven days")))
        }
        Action::Release(delay) => {
            let until = (!delay.is_zero()).then(|| now.plus(delay));
            Ok(Ending::Release { delay, until })
        }
    }
}

/// A batch of settlements under way: each with why it can't be, where it can't.
#[derive(Debug)]
pub(crate) struct Batch(Vec<(Settlement, Option<(Failure, String)>)>);

impl Batch {
    /// Puts aside what can be settled.
    pub(crate) fn hold(
        ledger: &mut Ledger,
        settlements: Vec<Settlement>,
        opening: u32,
        now: Mono,
    ) -> (Self, Vec<Held>) {
        let mut held = Vec::with_capacity(settlements.len());
        let batch = settlements.into_iter().map(|settlement| {
            let failure =
                Held::hold(ledger, &settlement, opening, now).map(|one| held.push(one)).err();
            (settlement, failure)
        });
        (Self(batch.collect()), held)
    }

    /// A batch of which nothing is put aside.
    pub(crate) fn untouched(settlements: Vec<Settlement>) -> Self {
        Self(settlements.into_iter().map(|settlement| (settlement, None)).collect())
    }

    /// A batch for a queue that is not there.
    pub(crate) fn foreign(settlements: Vec<Settlement>) -> Self {
        let gone = || Some(gone("no queue has that name"));
        Self(settlements.into_iter().map(|settlement| (settlement, gone())).collect())
    }

    /// The answer for each, once it is known what came of those that were put aside.
    pub(crate) fn answers(self, booked: Result<(), StoreError>) -> Vec<Result<(), Unsettled>> {
        let failed = booked.err().map(|error| (failure(&error), error.to_string()));
        self.0
            .into_iter()
            .map(|(settlement, failure)| match failure.or_else(|| failed.clone()) {
                None => Ok(()),
                Some((failure, text)) => Err(Unsettled { settlement, failure, text }),
            })
            .collect()
    }
}

fn failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Full(_) => Failure::Retry,
        StoreError::Failed(..) | StoreError::Closed => Failure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_what_it_was_made_from() {
        let claim = Claim { opening: u32::MAX, count: 7, sequence: u64::MAX - 1 };
        assert_eq!(Claim::read(&claim.receipt()), Some(claim));
        for other in ["", "short", "seventeen letters", "sixteen letters!"] {
            let read = Claim::read(&Receipt::from(other.to_owned()));
            assert_eq!(read.is_some(), other.len() == 16, "{other:?}");
        }
    }

    #[test]
    fn a_full_disk_is_worth_another_try_and_a_failed_store_is_not() {
        let path: std::sync::Arc<str> = "p".into();
        assert_eq!(failure(&StoreError::Full(path.clone())), Failure::Retry);
        assert_eq!(failure(&StoreError::Failed(path.clone(), path)), Failure::Refused);
        assert_eq!(failure(&StoreError::Closed), Failure::Refused);
    }
}
