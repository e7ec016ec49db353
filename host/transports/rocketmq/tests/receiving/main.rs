//! Receiving and settling on the real broker.

mod common;
mod counting;
mod faults;
mod ordered;
mod receiving;
mod settling;
mod several;
