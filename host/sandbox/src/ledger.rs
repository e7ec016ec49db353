//! What calls used, summed: one ledger for each tenant and for each handler.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pumphouse_contract::{Account, Ended};

const MINUTE: Duration = Duration::from_secs(60);

/// What one call logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Logged {
    /// Lines in the operator's log, and their bytes.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// Lines that the tenant's rate did not let pass.
    pub(crate) dropped: u64,
}

impl Logged {
    /// Counts a line of so many bytes that passed, or did not.
    pub(crate) fn count(&mut self, bytes: usize, passed: bool) {
        if passed {
            self.lines += 1;
            self.bytes += bytes as u64;
        } else {
            self.dropped += 1;
        }
    }
}

/// An account that calls are entered in.
#[derive(Debug)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
    instances: AtomicU64,
    instances_peak: AtomicU64,
}

#[derive(Debug)]
struct Book {
    account: Account,
    /// When this minute began.
    since: Instant,
    /// The largest memory of this minute, and of the one before.
    lately: (u64, u64),
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let book = Book { account: Account::default(), since: Instant::now(), lately: (0, 0) };
        Self {
            book: Mutex::new(book),
            instances: AtomicU64::new(0),
            instances_peak: AtomicU64::new(0),
        }
    }

    /// Enters a call that ended.
    pub(crate) fn enter(&self, ended: &Ended, waited: Duration, logged: Logged, now: Instant) {
        let mut book = self.book();
        book.turn_over(now);
        book.lately.0 = book.lately.0.max(ended.usage.memory_peak);
        let account = &mut book.account;
        account.enter(ended);
        account.waited += waited;
        account.log_lines += logged.lines;
        account.log_bytes += logged.bytes;
        account.log_dropped += logged.dropped;
    }

    /// Enters a call that was dropped before it ended.
    pub(crate) fn enter_dropped(&self) {
        self.book().account.dropped += 1;
    }

    /// An instance begins to live.
    pub(crate) fn instance_made(&self) {
        let live = self.instances.fetch_add(1, Relaxed) + 1;
        if live > self.instances_peak.load(Relaxed) {
            self.instances_peak.fetch_max(live, Relaxed);
        }
    }

    /// An instance is gone.
    pub(crate) fn instance_dropped(&self) {
        self.instances.fetch_sub(1, Relaxed);
    }

    /// The account as it stands.
    pub(crate) fn read(&self) -> Account {
        let mut book = self.book();
        book.turn_over(Instant::now());
        Account {
            memory_peak_lately: book.lately.0.max(book.lately.1),
            instances: self.instances.load(Relaxed),
            instances_peak: self.instances_peak.load(Relaxed),
            ..book.account
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Begins another minute, where one is over.
    fn turn_over(&mut self, now: Instant) {
        let past = now.saturating_duration_since(self.since);
        if past < MINUTE {
            return;
        }
        self.lately = (0, if past < MINUTE * 2 { self.lately.0 } else { 0 });
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_contract::{Outcome, Usage};

    fn ended(memory_peak: u64) -> Ended {
        Ended { result: Ok(Outcome::Ack), usage: Usage { memory_peak, ..Usage::default() } }
    }

    #[test]
    fn the_peak_of_late_is_forgotten_after_two_minutes_and_the_greatest_never() {
        let mut book = Book { account: Account::default(), since: Instant::now(), lately: (9, 0) };
        let start = book.since;
        book.turn_over(start + MINUTE);
        assert_eq!(book.lately, (0, 9));
        book.turn_over(start + MINUTE * 2);
        assert_eq!(book.lately, (0, 0));
        book.lately.0 = 5;
        book.turn_over(start + MINUTE * 9);
        assert_eq!(book.lately, (0, 0));
        let ledger = Ledger::new();
        for peak in [3, 7, 5] {
            ledger.enter(&ended(peak), Duration::ZERO, Logged::default(), Instant::now());
        }
        assert_eq!((ledger.read().memory_peak, ledger.read().memory_peak_lately), (7, 7));
    }

    #[test]
    fn instances_come_and_go_and_their_peak_stays() {
        let ledger = Ledger::new();
        (0..3).for_each(|_| ledger.instance_made());
        (0..2).for_each(|_| ledger.instance_dropped());
        ledger.instance_made();
        let account = ledger.read();
        assert_eq!((account.instances, account.instances_peak), (2, 3));
    }
}
