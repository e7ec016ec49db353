//! Which releases were sent and not answered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The most that are remembered. A release that fails is rare, and is asked again within seconds.
const MOST: usize = 1_024;

/// The receipts of releases that were sent; the oldest are forgotten.
#[derive(Default)]
pub(crate) struct Doubts(Mutex<VecDeque<String>>);

impl Doubts {
    /// Takes note of one; false where it is there already.
    pub(crate) fn add(&self, receipt: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|it| it == receipt) {
            return false;
        }
        if known.len() >= MOST {
            known.pop_front();
        }
        known.push_back(receipt.to_owned());
        true
    }

    /// Forgets one.
    pub(crate) fn remove(&self, receipt: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The last ones are those in progress.
        if let Some(at) = known.iter().rposition(|it| it == receipt) {
            known.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_sent_once() {
        let doubts = Doubts::default();
        assert!(doubts.add("one") && !doubts.add("one") && doubts.add("two"));
        doubts.remove("one");
        assert!(doubts.add("one") && !doubts.add("two"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let doubts = Doubts::default();
        for number in 0..=MOST {
            assert!(doubts.add(&number.to_string()));
        }
        assert!(doubts.add("0") && !doubts.add(&MOST.to_string()));
    }
}
