//! Asks the host for a tebibyte of random bytes in one call: the host must not make room for it first.

#![cfg(target_family = "wasm")]

use hostile_wasi::get_random_bytes;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    Outcome::unacceptable(get_random_bytes(1 << 40).len())
}
