//! How many handlers each tenant has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The handlers of each tenant by full name.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<HashMap<Box<str>, Names>>);

/// How often a name is there: a configuration is prepared beside the one in force, and both have it.
type Names = HashMap<Box<str>, usize>;

/// A handler that is there, as long as this lives.
#[derive(Debug)]
pub(crate) struct Entered {
    roster: Arc<Roster>,
    name: Box<str>,
}

impl Roster {
    /// Enters a handler by its full name.
    ///
    /// # Errors
    /// How many its tenant would have then, where that is more than `most`.
    pub(crate) fn enter(self: &Arc<Self>, name: &str, most: usize) -> Result<Entered, usize> {
        let mut tenants = self.tenants();
        let names = tenants.entry(tenant(name).into()).or_default();
        let asked = names.len() + 1;
        match names.get_mut(name) {
            Some(times) => *times += 1,
            None if asked > most => {
                if names.is_empty() {
                    tenants.remove(tenant(name));
                }
                return Err(asked);
            }
            None => drop(names.insert(name.into(), 1)),
        }
        drop(tenants);
        Ok(Entered { roster: self.clone(), name: name.into() })
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Box<str>, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut tenants = self.roster.tenants();
        let Some(names) = tenants.get_mut(tenant(&self.name)) else { return };
        match names.get_mut(&self.name) {
            Some(times) if *times > 1 => *times -= 1,
            _ => drop(names.remove(&self.name)),
        }
        if names.is_empty() {
            tenants.remove(tenant(&self.name));
        }
    }
}

fn tenant(name: &str) -> &str {
    name.split_once('/').map_or("", |(tenant, _)| tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_so_many_names() {
        let roster = Arc::new(Roster::default());
        let one = roster.enter("a/one", 2).unwrap();
        let again = roster.enter("a/one", 2).unwrap();
        let _two = roster.enter("a/two", 2).unwrap();
        assert_eq!(roster.enter("a/three", 2).unwrap_err(), 3);
        assert!(roster.enter("b/three", 2).is_ok());
        drop(one);
        assert_eq!(roster.enter("a/three", 2).unwrap_err(), 3, "it is there once more");
        drop(again);
        drop(roster.enter("a/three", 2).unwrap());
        assert_eq!(roster.enter("c/one", 0).unwrap_err(), 1);
        assert_eq!(roster.tenants().len(), 1);
    }
}
