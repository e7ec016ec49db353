//! Asks for the end of the process, successfully: the host must not take that for an answer.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(_message: Message) -> Outcome {
    std::process::exit(0)
}
