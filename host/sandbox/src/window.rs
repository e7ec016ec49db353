//! How many calls of a tenant may be under way before its subscriptions receive no more (C-18). Pure.
//!
//! It opens as calls end in time, and closes when one has waited too long: a tenant whose calls compute without end
//! receives few messages beyond those that run, and one whose calls are short soon has no bound at all.

/// Calls that may be under way for each that may compute, at least.
const LEAST: usize = 2;
/// Where the window opens beyond this, there is none.
const OPEN: usize = 64;

/// The bound on a tenant's calls, while it has one.
#[derive(Debug)]
pub(crate) struct Window {
    /// None: no bound.
    size: Option<usize>,
    /// Calls that ended in time since the size changed.
    in_time: usize,
    /// It is bounded because a call was late, and not because nothing has been called yet.
    slowed: bool,
}

impl Window {
    /// Of a tenant that has not called anything yet.
    pub(crate) fn new(runnable: usize) -> Self {
        Self { size: Some(least(runnable)), in_time: 0, slowed: false }
    }

    /// The calls that may be under way; none where there is no bound.
    pub(crate) fn size(&self) -> Option<usize> {
        self.size
    }

    /// A call ended in time. Each full window of them doubles it.
    pub(crate) fn in_time(&mut self) {
        let Some(size) = self.size else { return };
        self.in_time += 1;
        if self.in_time >= size {
            let doubled = size.saturating_mul(2);
            self.in_time = 0;
            self.size = (doubled <= OPEN.max(size)).then_some(doubled);
        }
    }

    /// So many calls may compute from now on. Where calls have shown what there is room for, that stands.
    pub(crate) fn resize(&mut self, runnable: usize) {
        if self.size.is_some() && !self.slowed {
            *self = Self::new(runnable);
        }
    }

    /// A call has waited too long.
    pub(crate) fn late(&mut self, runnable: usize) {
        *self = Self { slowed: true, ..Self::new(runnable) };
    }

    /// Whether it has a bound because a call was late.
    pub(crate) fn is_slowed(&self) -> bool {
        self.slowed && self.size.is_some()
    }
}

fn least(runnable: usize) -> usize {
    runnable.max(1).saturating_mul(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mut window: Window, in_time: usize) -> Window {
        (0..in_time).for_each(|_| window.in_time());
        window
    }

    #[test]
    fn it_opens_with_calls_that_end_in_time_and_closes_at_once() {
        for (in_time, size) in
            [(0, Some(8)), (7, Some(8)), (8, Some(16)), (24, Some(32)), (56, Some(64)), (120, None)]
        {
            assert_eq!(after(Window::new(4), in_time).size(), size, "{in_time}");
        }
        let mut open = after(Window::new(4), 1_000);
        assert!(!open.is_slowed());
        open.late(4);
        assert_eq!((open.size(), open.is_slowed()), (Some(8), true));
    }

    #[test]
    fn it_is_never_smaller_than_what_may_compute_nor_closed_for_good() {
        for runnable in [0, 1, 4, 100, usize::MAX] {
            let window = Window::new(runnable);
            assert!(window.size() >= Some(runnable.max(1)), "{runnable}");
        }
        assert_eq!(after(Window::new(100), 200).size(), None);
    }
}
