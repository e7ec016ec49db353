//! Counting deliveries: the broker keeps the number, the host only reads it (C-1 to C-6).

use std::num::NonZeroU32;

/// Which delivery of a message this is, as the wire says it: 1 for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// The first delivery.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// From a counter that starts at 1. None where the number is no count of deliveries: zero, negative or
    /// beyond 32 bits.
    #[must_use]
    pub fn from_wire(number: i64) -> Option<Self> {
        u32::try_from(number).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// From the decimal text of a counter that starts at 1, without allocating.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<NonZeroU32>().ok().map(Self)
    }

    /// The number, from 1.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// How many deliveries came before this one: 0 for the first. This is what a handler sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u32);

impl Count {
    /// The deliveries so far, this one included: c + 1.
    #[must_use]
    pub fn deliveries(self) -> u32 {
        self.0.saturating_add(1)
    }
}

impl From<Attempt> for Count {
    fn from(attempt: Attempt) -> Self {
        Self(attempt.get() - 1)
    }
}

/// What a transport knows about the number of a delivery, and how well it knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The number is exact: the broker counts in the transaction that delivers.
    Exact(Attempt),
    /// The broker says so many; there were at least as many deliveries that reached a host (C-3).
    AtLeast(Attempt),
    /// The broker said nothing usable. It presents 0.
    Unreported,
}

impl Counted {
    /// What the handler is shown: the attempt less one, 0 where nothing was reported.
    #[must_use]
    pub fn count(self) -> Count {
        match self {
            Self::Exact(attempt) | Self::AtLeast(attempt) => attempt.into(),
            Self::Unreported => Count(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-2, C-3, C-6: the wire's number less one, and 0 for everything that is no number of a delivery.
    #[test]
    fn c_6_a_counter_is_normalised() {
        let table: &[(i64, u32)] = &[
            (1, 0),
            (2, 1),
            (3, 2),
            (0, 0),
            (-1, 0),
            (i64::MIN, 0),
            (i64::MAX, 0),
            (4_294_967_295, 4_294_967_294),
        ];
        for (wire, presented) in table {
            let counted = Attempt::from_wire(*wire).map_or(Counted::Unreported, Counted::AtLeast);
            assert_eq!(counted.count(), Count(*presented), "wire {wire}");
        }
    }

    #[test]
    fn c_6_a_counter_in_text_is_normalised() {
        for (text, presented) in [
            ("1", 0),
            ("7", 6),
            ("", 0),
            ("0", 0),
            ("-3", 0),
            ("+2", 1),
            ("two", 0),
            ("99999999999", 0),
        ] {
            let counted = Attempt::parse(text).map_or(Counted::Unreported, Counted::AtLeast);
            assert_eq!(counted.count(), Count(presented), "text {text:?}");
        }
    }

    #[test]
    fn deliveries_saturate() {
        assert_eq!(Count(u32::MAX).deliveries(), u32::MAX);
    }
}
