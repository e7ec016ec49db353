//! What the WIT says, as Rust.

#![allow(missing_docs, unreachable_pub, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "handler",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
    exports: { default: async },
});
