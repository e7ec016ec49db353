//! Hoards handles: each is memory of the host's, not of the guest's.

#![cfg(target_family = "wasm")]

use hostile_wasi::subscribe_duration;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let hoard: Vec<_> = (0..5_000_000).map(|_| subscribe_duration(60_000_000_000)).collect();
    Outcome::unacceptable(hoard.len())
}
