//! Takes orders that arrive as JSON: the rules of guests/vectors/README.md.

use std::time::Duration;

use pumphouse_sdk::{Failure, Message, Outcome, Reason};
use serde::Deserialize;

pumphouse_sdk::handler!(handle);

#[derive(Deserialize)]
struct Order {
    id: String,
    quantity: u32,
    #[serde(default)]
    cancelled: bool,
    /// Seconds until the goods are there. Absent: they are there.
    #[serde(default)]
    available_in: Option<u64>,
}

fn handle(message: Message) -> Result<Outcome, Failure> {
    if message.header("hold") == Some("yes") {
        return Ok(Outcome::defer());
    }
    let Order { id, quantity, cancelled, available_in } = message.json()?;
    if quantity == 0 {
        return Err(Failure::unacceptable(format!("order {id} is for nothing")));
    }
    if cancelled {
        return Ok(Outcome::reject(Reason::None, format!("order {id} was cancelled")));
    }
    if is_given_up(&message) {
        let tries = message.delivery_count;
        return Err(Failure::delivery_error(format!("order {id} was tried {tries} times")));
    }
    Ok(match available_in {
        Some(seconds) => Outcome::defer_for(Duration::from_secs(seconds)),
        None => Outcome::ack(),
    })
}

/// Whether the message came as often as its sender allows.
fn is_given_up(message: &Message) -> bool {
    let most = message.header("give-up-after").and_then(|most| most.parse::<u32>().ok());
    most.is_some_and(|most| message.delivery_count >= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_sdk::IntoOutcome;

    fn outcome(body: &str) -> Outcome {
        handle(Message::test(body)).into_outcome()
    }

    #[test]
    fn a_valid_order_is_taken() {
        assert_eq!(outcome(r#"{"id":"A-1","quantity":2}"#), Outcome::ack());
    }

    #[test]
    fn an_order_for_goods_that_are_not_there_waits_for_them() {
        let body = r#"{"id":"A-2","quantity":2,"available_in":30}"#;
        assert_eq!(outcome(body), Outcome::defer_for(Duration::from_secs(30)));
    }

    #[test]
    fn what_is_no_order_is_unacceptable() {
        for body in ["", "{}", "an order", r#"{"id":"A-3","quantity":0}"#] {
            assert!(
                matches!(outcome(body), Outcome::Reject { reason: Reason::Unacceptable, .. }),
                "{body}"
            );
        }
    }
}
