//! The limits of one instance, and which of them it met.

use wasmtime::ResourceLimiter;

use crate::settings::Limits;

/// What one component may have. The pool of its profile is made for as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) memories: u32,
    pub(crate) tables: u32,
    pub(crate) core_instances: u32,
    /// Elements of one table. A host may give more.
    pub(crate) table_elements: u64,
}

pub(crate) const LEAN: Room =
    Room { memories: 2, tables: 8, core_instances: 16, table_elements: 20_000 };

/// A guest that is linked of many libraries, as Python's is, has a core instance for each.
pub(crate) const HEAVY: Room =
    Room { memories: 2, tables: 16, core_instances: 64, table_elements: 100_000 };

/// A limit that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tripped {
    Memory { asked: u64 },
    Table { asked: u64 },
}

/// Says no to growth beyond the limits, and remembers that it did: the guest that got no memory dies of
/// something else.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: u64,
    table_elements: u64,
    used: u64,
    last_growth: u64,
    peak: u64,
    tripped: Option<Tripped>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory: limits.memory,
            table_elements: limits.table_elements,
            used: 0,
            last_growth: 0,
            peak: 0,
            tripped: None,
        }
    }

    /// Begins another call's account. What the instance has, it has.
    pub(crate) fn renew(&mut self) {
        self.tripped = None;
        self.peak = self.used;
    }

    /// The most memory that the instance had, over all its memories, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    pub(crate) fn tripped(&self) -> Option<Tripped> {
        self.tripped
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.last_growth = (desired as u64).saturating_sub(current as u64);
        let asked = self.used.saturating_add(self.last_growth);
        if asked > self.memory {
            self.last_growth = 0;
            self.tripped = Some(Tripped::Memory { asked });
            return Ok(false);
        }
        self.used = asked;
        self.peak = self.peak.max(asked);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.used = self.used.saturating_sub(self.last_growth);
        self.last_growth = 0;
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let asked = desired as u64;
        if asked > self.table_elements {
            self.tripped = Some(Tripped::Table { asked });
            return Ok(false);
        }
        Ok(true)
    }

    // The pool of the component's profile is the stricter one.

    fn instances(&self) -> usize {
        HEAVY.core_instances as usize
    }

    fn tables(&self) -> usize {
        HEAVY.tables as usize
    }

    fn memories(&self) -> usize {
        HEAVY.memories as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FR-21.
    #[test]
    fn fr_21_the_limit_holds_over_all_memories_of_an_instance() {
        let mut limiter = Limiter::new(&Limits { memory: 100, ..Limits::default() });
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.memory_growing(40, 41, None).unwrap());
        assert_eq!(limiter.tripped(), Some(Tripped::Memory { asked: 101 }));
        assert_eq!(limiter.peak(), 100);
    }

    #[test]
    fn what_the_machine_did_not_give_is_not_counted() {
        let mut limiter = Limiter::new(&Limits { memory: 100, ..Limits::default() });
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no memory")).unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
        assert_eq!(limiter.tripped(), None);
    }

    #[test]
    fn fr_21_a_table_has_a_limit() {
        let mut limiter = Limiter::new(&Limits { table_elements: 10, ..Limits::default() });
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(!limiter.table_growing(10, 11, None).unwrap());
        assert_eq!(limiter.tripped(), Some(Tripped::Table { asked: 11 }));
    }
}
