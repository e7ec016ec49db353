//! One queue's ledger: which messages there are, whose they are for how long, and who waits behind whom.
//!
//! Nothing here waits, locks, or touches a disk. A change that must reach the disk before anyone sees it has two
//! halves: `take` and `hold` put a message aside, and what follows either carries the change out or undoes it.
//! Both brokers, in memory and durable, run these same halves.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use pumphouse_contract::{Message, Mono, Timestamp};

use crate::limits::Charge;
use crate::peek::Glimpse;
use crate::recent::Recent;

/// A message's place among all that the broker took. It orders the messages of a key.
pub(crate) type Sequence = u64;

/// A message that goes into the ledger.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Messages of one key are handed over one after the other.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) published_at: Timestamp,
    /// Deliveries so far.
    pub(crate) count: u32,
    pub(crate) first_received_at: Option<Timestamp>,
    /// None where the disk alone has it.
    pub(crate) message: Option<Arc<Message>>,
    /// Given up when the message is removed.
    pub(crate) _charge: Charge,
}

impl Entry {
    /// A new message that is held in memory.
    pub(crate) fn new(message: Arc<Message>, published_at: Timestamp, charge: Charge) -> Self {
        Self {
            key: message.ordering_key.as_deref().map(Arc::from),
            published_at,
            count: 0,
            first_received_at: None,
            message: Some(message),
            _charge: charge,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the list of those that can be taken.
    Ready,
    /// Another message of its key comes first.
    Behind,
    /// Taken, but its lease is not yet on the books.
    Granting,
    /// Someone's until then.
    Leased(Mono),
    /// Someone's until then, who said how it ends; that is not yet on the books.
    Settling(Mono),
    /// Released; to be taken again from then on.
    Delayed(Mono),
}

impl State {
    /// What an operator is shown. One whose time has come is shown as it was until someone asks for it.
    fn label(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Behind => "behind",
            Self::Granting | Self::Leased(_) | Self::Settling(_) => "leased",
            Self::Delayed(_) => "delayed",
        }
    }
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    state: State,
}

/// A message that was taken.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) sequence: Sequence,
    /// Deliveries so far, this one included.
    pub(crate) count: u32,
    pub(crate) first_received_at: Timestamp,
    /// None until it is read from the disk.
    pub(crate) message: Option<Arc<Message>>,
    /// What is wrong with it as it was read.
    pub(crate) undecodable: Option<String>,
}

/// Why a delivery can't be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// Its lease lapsed, or it is settled.
    Gone,
    /// An earlier settlement of it has not ended.
    Pending,
}

/// The messages of one queue.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    kept: BTreeMap<Sequence, Kept>,
    /// Those that can be taken: messages without a key, and of each key at most the first.
    ready: VecDeque<Sequence>,
    /// The messages of each key in their order. Only the first is ever taken, so none overtakes another.
    lanes: HashMap<Arc<str>, VecDeque<Sequence>>,
    /// When leases lapse and delays end.
    timers: BTreeSet<(Mono, Sequence)>,
    /// The deduplication ids of late, where no disk keeps them.
    pub(crate) recent: Recent,
}

impl Ledger {
    /// Adds a new message.
    pub(crate) fn push(&mut self, sequence: Sequence, entry: Entry) {
        let state = if self.join_lane(sequence, &entry) { State::Ready } else { State::Behind };
        if state == State::Ready {
            self.ready.push_back(sequence);
        }
        self.kept.insert(sequence, Kept { entry, state });
    }

    /// Adds a message that an earlier process left leased or delayed until then. Messages are restored in the
    /// order of their sequence.
    pub(crate) fn restore(&mut self, sequence: Sequence, entry: Entry, until: Mono) {
        // Only the first of a key was ever taken, so one that waits behind another has nothing to wait out.
        let state =
            if self.join_lane(sequence, &entry) { State::Delayed(until) } else { State::Behind };
        if state != State::Behind {
            self.timers.insert((until, sequence));
        }
        self.kept.insert(sequence, Kept { entry, state });
    }

    /// Whether the message is the first of its key; one without a key always is.
    fn join_lane(&mut self, sequence: Sequence, entry: &Entry) -> bool {
        let Some(key) = &entry.key else { return true };
        let lane = self.lanes.entry(Arc::clone(key)).or_default();
        lane.push_back(sequence);
        lane.len() == 1
    }

    /// Whether something can be taken now.
    pub(crate) fn any_ready(&mut self, now: Mono) -> bool {
        self.promote(now);
        !self.ready.is_empty()
    }

    /// Whether something could be taken when it was last looked.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next lease lapses or the next delay ends.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// How many messages there are, and when the oldest was published.
    pub(crate) fn depth(&self) -> (usize, Option<Timestamp>) {
        let oldest = self.kept.first_key_value().map(|(_, kept)| kept.entry.published_at);
        (self.kept.len(), oldest)
    }

    /// The oldest messages as they stand; nothing is taken.
    pub(crate) fn peek(&self, max: usize) -> Vec<Glimpse> {
        let oldest = self.kept.iter().take(max);
        let glimpse = |(sequence, kept): (&Sequence, &Kept)| Glimpse {
            sequence: *sequence,
            message: kept.entry.message.clone(),
            deliveries: kept.entry.count,
            state: kept.state.label(),
        };
        oldest.map(glimpse).collect()
    }

    /// Makes ready what was leased or delayed until now.
    fn promote(&mut self, now: Mono) {
        while let Some(&(due, sequence)) = self.timers.first() {
            if due > now {
                break;
            }
            self.timers.pop_first();
            if let Some(kept) = self.kept.get_mut(&sequence) {
                kept.state = State::Ready;
                self.ready.push_back(sequence);
            }
        }
    }

    /// Puts up to `max` messages aside and counts their delivery. What follows is [`Self::grant`] or
    /// [`Self::ungrant`].
    pub(crate) fn take(&mut self, now: Mono, wall: Timestamp, max: usize) -> Vec<Grant> {
        self.promote(now);
        let count = max.min(self.ready.len());
        let kept = &mut self.kept;
        self.ready
            .drain(..count)
            .filter_map(|sequence| Some(kept.get_mut(&sequence)?.begin(sequence, wall)))
            .collect()
    }

    /// The lease of a message that was taken is on the books.
    pub(crate) fn grant(&mut self, sequence: Sequence, until: Mono) {
        self.lease(sequence, until);
    }

    /// The lease of a message that was taken could not be booked: nobody got it, so nothing is counted.
    pub(crate) fn ungrant(&mut self, sequence: Sequence) {
        if let Some(kept) = self.kept.get_mut(&sequence) {
            kept.state = State::Ready;
            kept.entry.count = kept.entry.count.saturating_sub(1);
            if kept.entry.count == 0 {
                kept.entry.first_received_at = None;
            }
            self.ready.push_front(sequence);
        }
    }

    fn lease(&mut self, sequence: Sequence, until: Mono) {
        if let Some(kept) = self.kept.get_mut(&sequence) {
            kept.state = State::Leased(until);
            self.timers.insert((until, sequence));
        }
    }

    /// Puts the delivery number `count` of a message aside for its settlement. What follows is [`Self::remove`],
    /// [`Self::release`] or [`Self::unhold`].
    pub(crate) fn hold(&mut self, sequence: Sequence, count: u32, now: Mono) -> Result<(), Stale> {
        let kept = self.kept.get_mut(&sequence).ok_or(Stale::Gone)?;
        match kept.state {
            _ if kept.entry.count != count => Err(Stale::Gone),
            State::Leased(until) if until > now => {
                kept.state = State::Settling(until);
                self.timers.remove(&(until, sequence));
                Ok(())
            }
            State::Settling(_) => Err(Stale::Pending),
            State::Leased(_)
            | State::Ready
            | State::Behind
            | State::Granting
            | State::Delayed(_) => Err(Stale::Gone),
        }
    }

    /// The settlement could not be booked: the delivery is still whose it was.
    pub(crate) fn unhold(&mut self, sequence: Sequence) {
        if let Some(State::Settling(until)) = self.kept.get(&sequence).map(|kept| kept.state) {
            self.lease(sequence, until);
        }
    }

    /// Removes a message; the next of its key comes first now.
    pub(crate) fn remove(&mut self, sequence: Sequence) {
        let Some(kept) = self.kept.remove(&sequence) else { return };
        let Some(key) = kept.entry.key else { return };
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.pop_front();
        match lane.front().copied() {
            Some(next) => self.make_ready(next),
            None => drop(self.lanes.remove(&key)),
        }
    }

    /// Gives a message back, to be taken at once or from `until` on. It stays the first of its key.
    pub(crate) fn release(&mut self, sequence: Sequence, until: Option<Mono>) {
        let Some(until) = until else { return self.make_ready(sequence) };
        if let Some(kept) = self.kept.get_mut(&sequence) {
            kept.state = State::Delayed(until);
            self.timers.insert((until, sequence));
        }
    }

    fn make_ready(&mut self, sequence: Sequence) {
        if let Some(kept) = self.kept.get_mut(&sequence) {
            kept.state = State::Ready;
            self.ready.push_back(sequence);
        }
    }
}

impl Kept {
    /// Counts a delivery that begins.
    fn begin(&mut self, sequence: Sequence, wall: Timestamp) -> Grant {
        self.state = State::Granting;
        self.entry.count = self.entry.count.saturating_add(1);
        Grant {
            sequence,
            count: self.entry.count,
            first_received_at: *self.entry.first_received_at.get_or_insert(wall),
            message: self.entry.message.clone(),
            undecodable: None,
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
