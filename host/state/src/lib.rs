//! The host's own store: which messages were handled (S-5).
//!
//! [`SqliteState`] outlives the host; [`MemoryState`] does not. Both answer behind
//! [`State`](pumphouse_contract::ports::State), and neither says that a message was handled before its mark was
//! stored.

mod memory;
mod sqlite;
mod store;
mod writer;

pub use memory::MemoryState;
pub use sqlite::SqliteState;
pub use store::{FILE, StateOpenError};
