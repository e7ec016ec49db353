//! Computes for three seconds and acknowledges then. Where the deadline is shorter, nobody may take that for an answer.

use std::time::{Duration, Instant};

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        std::hint::black_box(&message);
    }
    Outcome::ack()
}
