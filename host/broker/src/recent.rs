//! Deduplication ids of late, for a queue in memory. The durable broker keeps its own on the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pumphouse_contract::Mono;

use crate::limits::{DEDUPLICATION, MOST_REMEMBERED};

/// Which messages were published under which deduplication id, for a while.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    message_ids: HashMap<Arc<str>, String>,
    until: VecDeque<(Mono, Arc<str>)>,
}

impl Recent {
    /// The message that was published under this id.
    pub(crate) fn find(&mut self, id: &str, now: Mono) -> Option<String> {
        while self.until.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        self.message_ids.get(id).cloned()
    }

    /// Remembers a message under an id that was not found.
    pub(crate) fn note(&mut self, id: &str, message_id: &str, now: Mono) {
        if self.until.len() >= MOST_REMEMBERED {
            self.forget_oldest();
        }
        let id: Arc<str> = id.into();
        self.until.push_back((now.plus(DEDUPLICATION), Arc::clone(&id)));
        self.message_ids.insert(id, message_id.to_owned());
    }

    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.until.pop_front() {
            self.message_ids.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_forgotten_after_its_time() {
        let mut recent = Recent::default();
        let start = Mono::default();
        recent.note("a", "m-1", start);
        let just_before = start.plus(DEDUPLICATION - std::time::Duration::from_millis(1));
        assert_eq!(recent.find("a", just_before).as_deref(), Some("m-1"));
        assert_eq!(recent.find("a", start.plus(DEDUPLICATION)), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut recent = Recent::default();
        for n in 0..=MOST_REMEMBERED {
            recent.note(&n.to_string(), "m", Mono::default());
        }
        assert_eq!(recent.find("0", Mono::default()), None);
        assert_eq!(recent.message_ids.len(), MOST_REMEMBERED);
    }
}
