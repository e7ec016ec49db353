//! Whose turn it is: one job of each tenant after another, however many each has.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Jobs by tenant.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    most: usize,
    waiting: HashMap<Arc<str>, VecDeque<T>>,
    /// The tenants that have jobs, in the order of their turns.
    order: VecDeque<Arc<str>>,
}

impl<T> Turns<T> {
    /// Without a job. Of one tenant at most `most` wait.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, waiting: HashMap::new(), order: VecDeque::new() }
    }

    /// Queues a job behind its tenant's others; gives it back where too many wait already.
    pub(crate) fn push(&mut self, tenant: &Arc<str>, job: T) -> Result<(), T> {
        let waiting = self.waiting.entry(tenant.clone()).or_default();
        if waiting.len() >= self.most {
            return Err(job);
        }
        if waiting.is_empty() {
            self.order.push_back(tenant.clone());
        }
        waiting.push_back(job);
        Ok(())
    }

    /// The job whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let tenant = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&tenant)?;
        let job = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.order.push_back(tenant);
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_jobs_of_one_tenant_hold_up_nobody_else() {
        let (many, one): (Arc<str>, Arc<str>) = ("many".into(), "one".into());
        let mut turns = Turns::new(100);
        for n in 0..100 {
            turns.push(&many, n).unwrap();
        }
        turns.push(&one, 1_000).unwrap();
        assert_eq!(turns.push(&many, 100), Err(100));
        assert_eq!([turns.pop(), turns.pop(), turns.pop()], [Some(0), Some(1_000), Some(1)]);
        turns.push(&one, 1_001).unwrap();
        let rest: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(rest.len(), 99);
        assert_eq!(rest[..3], [2, 1_001, 3]);
        assert!(turns.waiting.is_empty() && turns.order.is_empty());
    }
}
