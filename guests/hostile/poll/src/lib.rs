//! Waits for a pollable that is ready long after every deadline.

#![cfg(target_family = "wasm")]

use hostile_wasi::subscribe_duration;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    subscribe_duration(60_000_000_000).block();
    Outcome::ack()
}
