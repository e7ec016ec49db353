//! RocketMQ's remoting protocol.

mod call;
pub mod code;
mod frame;

pub use call::{Answer, call};
pub use frame::Fields;
