//! Nothing but tests; see `tests/`. They look at components that were built before:
//! `cargo build --release --target wasm32-wasip2`.
