use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ANY;

type Condition<S> = dyn Fn(&S) -> bool + Send + Sync;

/// Which requests a rule is for. A request shows its condition an `S`, by default its body.
pub(crate) struct Selection<S: ?Sized = [u8]> {
    operation: String,
    skip: u64,
    left: u64,
    condition: Option<Box<Condition<S>>>,
}

impl<S: ?Sized> Selection<S> {
    pub(crate) fn of(operation: &str) -> Self {
        Self { operation: operation.to_owned(), skip: 0, left: u64::MAX, condition: None }
    }

    pub(crate) fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    pub(crate) fn times(mut self, count: u64) -> Self {
        self.left = count;
        self
    }

    pub(crate) fn when(mut self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Box::new(condition));
        self
    }

    /// Whether it is this rule's turn. Uses up one of the requests to skip or to act on.
    fn take(&mut self, operation: &str, shown: &S) -> bool {
        if self.left == 0 || (self.operation != ANY && self.operation != operation) {
            return false;
        }
        if self.condition.as_ref().is_some_and(|condition| !condition(shown)) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        true
    }
}

struct Rule<A, S: ?Sized> {
    selection: Selection<S>,
    action: A,
    applied: Applied,
}

/// The rules of a proxy, in the order of their making.
pub(crate) struct Rules<A, S: ?Sized = [u8]>(Mutex<Vec<Rule<A, S>>>);

impl<A: Clone, S: ?Sized> Rules<A, S> {
    pub(crate) fn add(&self, selection: Selection<S>, action: A) -> Applied {
        let applied = Applied::default();
        self.rules().push(Rule { selection, action, applied: applied.clone() });
        applied
    }

    /// What the first rule that applies wants done.
    pub(crate) fn pick(&self, operation: &str, shown: &S) -> Option<A> {
        let mut rules = self.rules();
        let rule =
            rules.iter_mut().find_map(|rule| rule.selection.take(operation, shown).then_some(rule));
        let picked = rule.map(|rule| {
            rule.applied.0.fetch_add(1, Ordering::SeqCst);
            rule.action.clone()
        });
        rules.retain(|rule| rule.selection.left > 0);
        picked
    }

    pub(crate) fn clear(&self) {
        self.rules().clear();
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule<A, S>>> {
        // A condition of a test that panics leaves the list as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A, S: ?Sized> Default for Rules<A, S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<A: Clone, S: ?Sized> fmt::Debug for Rules<A, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Rules").field(&self.rules().len()).finish()
    }
}

/// How often a rule was followed, so that a test can show that its fault happened.
#[derive(Debug, Clone, Default)]
pub struct Applied(Arc<AtomicU64>);

impl Applied {
    /// How often so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
