use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::faults::ANY;

/// Whose messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// How many messages passed, by method.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<(Side, String), u64>>);

impl Tally {
    pub(super) fn add(&self, side: Side, method: &str, messages: u64) {
        if messages > 0 {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry((side, method.to_owned())).or_default() += messages;
        }
    }

    pub(super) fn count(&self, side: Side, method: &str) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = counts.iter().filter(|((counted, _), _)| *counted == side);
        counted
            .filter(|((_, name), _)| method == ANY || name == method)
            .map(|(_, count)| count)
            .sum()
    }

    pub(super) fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
