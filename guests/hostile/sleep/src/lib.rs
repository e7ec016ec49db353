//! Waits in a host call, where an interruption of guest code does not reach it.

use std::time::Duration;

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    std::thread::sleep(Duration::from_secs(60));
    Outcome::ack()
}
