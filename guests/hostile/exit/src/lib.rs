//! Asks for the end of the process, successfully: the host must not take that for an answer.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    std::process::exit(0)
}
