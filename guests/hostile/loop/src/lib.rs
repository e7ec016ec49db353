//! Never ends, and never calls the host: only an interruption gets it off its thread.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let mut turns: u64 = 0;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
