//! The handler's secrets: text by name, each granted by `grants.secrets.NAME` of the configuration.
//!
//! A component that calls this needs a grant of at least one secret. The host writes `[secret NAME]` where a
//! secret stands as it is in a log line, a panic's message or a rejection's description; it does not find one
//! that is encoded or cut in pieces. In native tests the secrets are those that the test's own thread has made
//! with `secrets::set_for_test`.

/// The secret of that name; `None` where the configuration grants no such name.
pub fn get(name: &str) -> Option<String> {
    imp::get(name)
}

#[cfg(target_family = "wasm")]
use crate::wit::secrets as imp;

#[cfg(not(target_family = "wasm"))]
pub use imp::set_for_test;

#[cfg(not(target_family = "wasm"))]
mod imp {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    thread_local! {
        static SECRETS: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// Makes or replaces a secret for the calling thread, that is, for one test.
    pub fn set_for_test(name: impl Into<String>, value: impl Into<String>) {
        SECRETS.with_borrow_mut(|secrets| secrets.insert(name.into(), value.into()));
    }

    pub(super) fn get(name: &str) -> Option<String> {
        SECRETS.with_borrow(|secrets| secrets.get(name).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_sees_its_own_secrets() {
        set_for_test("token", "1");
        assert_eq!(get("token").as_deref(), Some("1"));
        assert_eq!(get("other"), None);
        assert_eq!(std::thread::spawn(|| get("token")).join().unwrap(), None);
    }
}
