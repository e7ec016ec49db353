//! Writes a million log lines. Needs the logging grant.

use pumphouse_sdk::{Message, Outcome, log};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    for line in 0..1_000_000 {
        log::info(format!("line {line} of a flood"));
    }
    Outcome::ack()
}
