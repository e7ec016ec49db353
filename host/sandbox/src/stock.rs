//! What lies in the folder of compiled components, and what of it handlers use.

use std::collections::HashMap;
use std::time::SystemTime;

/// The artefacts by key.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    items: HashMap<Box<str>, Item>,
    /// Bytes that no handler uses.
    unused: u64,
}

#[derive(Debug)]
struct Item {
    size: u64,
    stored: SystemTime,
    users: usize,
}

impl Stock {
    /// An artefact that was stored, or found.
    pub(crate) fn put(&mut self, key: &str, size: u64, stored: SystemTime) {
        let users = self.remove(key);
        if users == 0 {
            self.unused += size;
        }
        self.items.insert(key.into(), Item { size, stored, users });
    }

    /// One more handler uses it.
    pub(crate) fn hold(&mut self, key: &str) {
        let new = || Item { size: 0, stored: SystemTime::UNIX_EPOCH, users: 0 };
        let item = self.items.entry(key.into()).or_insert_with(new);
        if item.users == 0 {
            self.unused = self.unused.saturating_sub(item.size);
        }
        item.users += 1;
    }

    /// One handler less uses it.
    pub(crate) fn release(&mut self, key: &str) {
        let Some(item) = self.items.get_mut(key) else { return };
        item.users = item.users.saturating_sub(1);
        if item.users == 0 {
            self.unused += item.size;
            if item.size == 0 {
                self.items.remove(key);
            }
        }
    }

    /// Takes out what nobody uses, the oldest first, until no more than so many bytes of it are left.
    pub(crate) fn surplus(&mut self, most: u64) -> Vec<Box<str>> {
        if self.unused <= most {
            return Vec::new();
        }
        let unused = self.items.iter().filter(|(_, item)| item.users == 0);
        let mut oldest: Vec<_> =
            unused.map(|(key, item)| (item.stored, key.clone(), item.size)).collect();
        oldest.sort_unstable();
        let mut left = self.unused;
        let over = oldest.into_iter().take_while(|(_, _, size)| {
            let over = left > most;
            left = left.saturating_sub(*size);
            over
        });
        let over: Vec<_> = over.map(|(_, key, _)| key).collect();
        for key in &over {
            self.remove(key);
        }
        over
    }

    /// Who used it.
    fn remove(&mut self, key: &str) -> usize {
        let Some(Item { size, users, .. }) = self.items.remove(key) else { return 0 };
        if users == 0 {
            self.unused = self.unused.saturating_sub(size);
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn only_what_nobody_uses_is_surplus_and_the_oldest_goes_first() {
        let mut stock = Stock::default();
        for (key, stored) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            stock.put(key, 10, at(stored));
        }
        stock.hold("a");
        assert_eq!(stock.unused, 30);
        assert!(stock.surplus(30).is_empty());
        assert_eq!(stock.surplus(15), ["b".into(), "c".into()]);
        stock.release("a");
        assert_eq!(stock.unused, 20);
        assert_eq!(stock.surplus(0), ["a".into(), "d".into()]);
        assert_eq!(stock.unused, 0);
    }

    #[test]
    fn stored_anew_it_keeps_its_users() {
        let mut stock = Stock::default();
        stock.hold("a");
        stock.put("a", 10, at(1));
        stock.put("a", 12, at(2));
        assert!(stock.surplus(0).is_empty());
        stock.release("a");
        assert_eq!(stock.unused, 12);
    }
}
