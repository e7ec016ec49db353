//! What the proxies share: who may connect, what passed, and which rule applies.

mod door;
mod gate;
mod journal;
mod rules;

pub(crate) use door::{Door, Serve};
pub(crate) use gate::{Gate, Valve};
pub use journal::Seen;
pub(crate) use journal::{InFlight, Journal, kept};
pub use rules::Applied;
pub(crate) use rules::{Rules, Selection};

/// Stands for every operation, in a rule and in a count.
pub const ANY: &str = "*";
