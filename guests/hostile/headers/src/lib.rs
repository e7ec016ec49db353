//! Honest: puts every header into a map, as handlers do, and acknowledges. What is hostile is the message, with
//! thousands of headers. It answers with their number where the body asks for it: `count`.

use std::collections::HashMap;

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    let headers: HashMap<&str, &str> =
        message.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    match message.body.as_slice() {
        b"count" => Outcome::unacceptable(headers.len()),
        _ => Outcome::ack(),
    }
}
