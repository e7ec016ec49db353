//! The functions of WASI that the hostile guests call past the standard library.

#![cfg(target_family = "wasm")]

pub use wasi::clocks::monotonic_clock::{now, resolution, subscribe_duration};
pub use wasi::random::random::get_random_bytes;

wit_bindgen::generate!({ path: "wit", world: "calls", generate_all });
