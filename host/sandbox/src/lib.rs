//! Handlers as sandboxed WebAssembly components.
