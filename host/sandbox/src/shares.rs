//! Who goes next where there are fewer places than calls. Pure: it knows no clock, no lock and no task.
//!
//! Only the excess waits: while a place is free and the tenant is below its own bound, a call takes it. Among those
//! that wait, the tenant goes first that had least in proportion to its weight; within a tenant, who came first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What one place, or one nanosecond, counts for a tenant of weight 1.
const ONE: u64 = 1 << 32;

/// How far a tenant may be ahead or behind when it begins to wait: a tenth of a second at the default weight. What
/// was used while nobody wanted for it is not held against anyone for longer, and what was not used is not saved up.
const LEEWAY: u128 = 100_000_000 * (ONE as u128) / 100;

/// What "least" is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The places that a tenant holds.
    Held,
    /// The time that its calls have used.
    Used,
}

/// A tenant's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) weight: u32,
    /// The most places that it holds at once.
    pub(crate) most: usize,
}

/// Why a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// Its tenant has as many places as it may have.
    Tenant,
    /// All tenants together have taken all places.
    All,
}

/// The places, who holds them and who waits. `W` is what a waiting call leaves, to be told.
///
/// After each change [`Shares::next`] must be asked until it has none: then no place is free that anyone waits for.
#[derive(Debug)]
pub(crate) struct Shares<W> {
    measure: Measure,
    capacity: usize,
    taken: usize,
    /// The virtual time at which a place was given last. It never goes back.
    now: u128,
    /// The number of the next call that waits.
    number: u64,
    parties: Vec<Party<W>>,
    /// The tenants that would take a place if one were free.
    ready: BTreeSet<Turn>,
}

/// Least first; among equals, the one whose call has waited longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    had: u128,
    number: u64,
    party: usize,
}

#[derive(Debug)]
struct Party<W> {
    /// What one place or nanosecond counts for it.
    price: u64,
    most: usize,
    taken: usize,
    /// Its virtual time.
    used: u128,
    waiting: BTreeMap<u64, W>,
    /// As it stands in `ready`.
    turn: Option<Turn>,
}

impl<W> Shares<W> {
    pub(crate) fn new(measure: Measure, capacity: usize) -> Self {
        Self {
            measure,
            capacity,
            taken: 0,
            now: 0,
            number: 0,
            parties: Vec::new(),
            ready: BTreeSet::new(),
        }
    }

    /// Adds a tenant, or changes its terms. Tenants are numbered from 0 on.
    pub(crate) fn join(&mut self, party: usize, terms: Terms) {
        while self.parties.len() <= party {
            self.parties.push(Party::new(self.now));
        }
        if let Some(joined) = self.parties.get_mut(party) {
            joined.price = ONE / u64::from(terms.weight.max(1));
            joined.most = terms.most.max(1);
        }
        self.rank(party);
    }

    /// Takes a place that is free. False where there is none, or none for this tenant.
    pub(crate) fn take(&mut self, party: usize) -> bool {
        let free = self.taken < self.capacity;
        let Some(taker) = self.parties.get_mut(party) else { return false };
        if !free || taker.taken >= taker.most || !taker.waiting.is_empty() {
            return false;
        }
        taker.settle(self.now);
        self.give(party);
        true
    }

    /// Waits for a place, behind the calls of the same tenant that wait already. Gives the call's number.
    pub(crate) fn wait(&mut self, party: usize, waiter: W) -> u64 {
        let number = self.number;
        self.number += 1;
        if let Some(waiting) = self.parties.get_mut(party) {
            waiting.settle(self.now);
            waiting.waiting.insert(number, waiter);
        }
        self.rank(party);
        number
    }

    /// What a call left that still waits; none where it has been given a place.
    pub(crate) fn waiter(&mut self, party: usize, number: u64) -> Option<&mut W> {
        self.parties.get_mut(party)?.waiting.get_mut(&number)
    }

    /// Waits no longer. False where the call had been given a place, which it holds.
    pub(crate) fn leave(&mut self, party: usize, number: u64) -> bool {
        let waiting = self.parties.get_mut(party).map(|party| &mut party.waiting);
        let left = waiting.is_some_and(|waiting| waiting.remove(&number).is_some());
        self.rank(party);
        left
    }

    /// Gives a place back.
    pub(crate) fn give_back(&mut self, party: usize) {
        self.taken = self.taken.saturating_sub(1);
        if let Some(giver) = self.parties.get_mut(party) {
            giver.taken = giver.taken.saturating_sub(1);
        }
        self.rank(party);
    }

    /// Charges what a call has used.
    pub(crate) fn charge(&mut self, party: usize, used: Duration) {
        let nanos = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        if let Some(charged) = self.parties.get_mut(party) {
            charged.used += u128::from(nanos) * u128::from(charged.price);
        }
        self.rank(party);
    }

    /// The next who waits and gets a place now. It holds it from here on.
    pub(crate) fn next(&mut self) -> Option<W> {
        if self.taken >= self.capacity {
            return None;
        }
        let party = self.ready.first()?.party;
        let (_, waiter) = self.parties.get_mut(party)?.waiting.pop_first()?;
        self.give(party);
        self.rank(party);
        Some(waiter)
    }

    /// Whether a tenant that had less waits for a place that this one holds.
    pub(crate) fn owes(&self, party: usize) -> bool {
        let had = self.parties.get(party).map(|party| party.had(self.measure));
        self.ready.first().is_some_and(|first| had.is_some_and(|had| first.had < had))
    }

    /// How many calls of the tenant wait.
    pub(crate) fn waiting(&self, party: usize) -> usize {
        self.parties.get(party).map_or(0, |party| party.waiting.len())
    }

    /// How many places the tenant holds.
    pub(crate) fn held(&self, party: usize) -> usize {
        self.parties.get(party).map_or(0, |party| party.taken)
    }

    /// Whether somebody waits for a place that this tenant may leave.
    pub(crate) fn wanted(&self, party: usize) -> bool {
        !self.ready.is_empty() || self.waiting(party) > 0
    }

    /// What the tenant is short of, if its calls have to wait.
    pub(crate) fn short(&self, party: usize) -> Short {
        let full = self.parties.get(party).is_some_and(|party| party.taken >= party.most);
        if full && self.taken < self.capacity { Short::Tenant } else { Short::All }
    }

    fn give(&mut self, party: usize) {
        let Some(taker) = self.parties.get_mut(party) else { return };
        taker.taken += 1;
        self.taken += 1;
        self.now = self.now.max(taker.used);
    }

    /// Puts the tenant where it belongs among those that are ready.
    fn rank(&mut self, party: usize) {
        let Some(ranked) = self.parties.get_mut(party) else { return };
        let turn = ranked.turn_of(party, self.measure);
        if turn == ranked.turn {
            return;
        }
        if let Some(before) = std::mem::replace(&mut ranked.turn, turn) {
            self.ready.remove(&before);
        }
        self.ready.extend(turn);
    }
}

impl<W> Party<W> {
    fn new(now: u128) -> Self {
        Self { price: ONE, most: 1, taken: 0, used: now, waiting: BTreeMap::new(), turn: None }
    }

    /// Who comes back from idleness has nothing saved up; who was there has little, and owes little.
    fn settle(&mut self, now: u128) {
        let idle = self.taken == 0 && self.waiting.is_empty();
        let least = if idle { now } else { now.saturating_sub(LEEWAY) };
        self.used = self.used.clamp(least, now + LEEWAY);
    }

    fn had(&self, measure: Measure) -> u128 {
        match measure {
            Measure::Held => self.taken as u128 * u128::from(self.price),
            Measure::Used => self.used,
        }
    }

    fn turn_of(&self, party: usize, measure: Measure) -> Option<Turn> {
        let (number, _) = self.waiting.first_key_value()?;
        let turn = Turn { had: self.had(measure), number: *number, party };
        (self.taken < self.most).then_some(turn)
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
