//! The handler's settings: text by name, from `grants.config = { name = "value" }` of the configuration.
//!
//! A component that calls one of these functions needs that grant. In native tests the settings are those
//! that the test's own thread has made with `config::set_for_test`.

use std::fmt;

/// Why a setting could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The store could not be asked.
    Upstream(String),
    /// The store could not be read.
    Io(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream(text) => write!(f, "the settings can't be asked for: {text}"),
            Self::Io(text) => write!(f, "the settings can't be read: {text}"),
        }
    }
}

impl std::error::Error for Error {}

/// The setting of that name; `None` where the configuration has no such name.
///
/// # Errors
///
/// The host could not ask or read its store. With `?` that defers the message.
pub fn get(name: &str) -> Result<Option<String>, Error> {
    imp::get(name)
}

/// Every setting, in the order of the names.
///
/// # Errors
///
/// The host could not ask or read its store. With `?` that defers the message.
pub fn all() -> Result<Vec<(String, String)>, Error> {
    imp::all()
}

#[cfg(target_family = "wasm")]
use crate::wit::config as imp;

#[cfg(not(target_family = "wasm"))]
pub use imp::set_for_test;

#[cfg(not(target_family = "wasm"))]
mod imp {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::Error;

    thread_local! {
        static SETTINGS: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// Makes or replaces a setting for the calling thread, that is, for one test.
    pub fn set_for_test(name: impl Into<String>, value: impl Into<String>) {
        SETTINGS.with_borrow_mut(|settings| settings.insert(name.into(), value.into()));
    }

    pub(super) fn get(name: &str) -> Result<Option<String>, Error> {
        Ok(SETTINGS.with_borrow(|settings| settings.get(name).cloned()))
    }

    pub(super) fn all() -> Result<Vec<(String, String)>, Error> {
        Ok(SETTINGS.with_borrow(|settings| {
            settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_sees_its_own_settings_in_the_order_of_the_names() {
        set_for_test("b", "1");
        set_for_test("a", "2");
        set_for_test("b", "3");
        assert_eq!(get("b"), Ok(Some("3".into())));
        assert_eq!(all(), Ok(vec![("a".into(), "2".into()), ("b".into(), "3".into())]));
    }

    #[test]
    fn a_name_that_nobody_set_is_none() {
        set_for_test("a", "1");
        assert_eq!(std::thread::spawn(|| get("a")).join().unwrap(), Ok(None));
        assert_eq!(get("c"), Ok(None));
    }
}
