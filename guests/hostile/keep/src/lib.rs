//! Keeps every handle that the host gave it, and answers as if nothing were the matter: the host has to let go of
//! them itself.

#![cfg(target_family = "wasm")]

use hostile_wasi::subscribe_duration;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    for _ in 0..500 {
        std::mem::forget(subscribe_duration(60_000_000_000));
    }
    Outcome::ack()
}
