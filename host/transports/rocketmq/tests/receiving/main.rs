//! Receiving and settling on the real broker.

mod common;
mod counting;
mod ordered;
mod receiving;
mod settling;
