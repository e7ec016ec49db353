//! The embedded broker: a transport that needs no server, in memory or durable on SQLite.
//!
//! It counts every delivery exactly, lapses included; it keeps the order of each ordering key, redeliveries
//! included; it delays what is released for as long as was asked; and the durable one confirms nothing that is not
//! on the disk. What is semantics is in one place, the ledger; the durable broker adds that each change is
//! committed before anyone sees it.

mod broker;
mod codec;
mod error;
mod ledger;
mod limits;
mod lock;
mod ops;
mod peek;
mod queue;
mod recent;
mod reserve;
mod settling;
mod sink;
mod source;
mod store;
mod writer;

pub use broker::Broker;
pub use error::{BrokerError, StoreError};
pub use limits::Limits;
pub use source::CAPABILITIES;
