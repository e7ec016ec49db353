//! Writes a million log lines. Needs the logging grant.

use pumphouse_sdk::{Message, Outcome, log};

pumphouse_sdk::handler!(handle);

fn handle(_message: Message) -> Outcome {
    for line in 0..1_000_000 {
        log::info(format!("line {line} of a flood"));
    }
    Outcome::ack()
}
