//! Answers with a description of as many bytes as the body says, 64 MiB by default.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let length = message.body_str().ok().and_then(|text| text.trim().parse().ok());
    Outcome::unacceptable("x".repeat(length.unwrap_or(64 << 20)))
}
