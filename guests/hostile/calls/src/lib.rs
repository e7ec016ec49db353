//! Calls the host without end: each call is short, and none of them waits.

#![cfg(target_family = "wasm")]

use hostile_wasi::now;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    loop {
        std::hint::black_box(now());
    }
}
