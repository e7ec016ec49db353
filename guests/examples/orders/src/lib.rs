//! Takes orders that arrive as JSON.

use std::time::Duration;

use pumphouse_sdk::{Failure, Message, Outcome};
use serde::Deserialize;

pumphouse_sdk::handler!(handle);

#[derive(Deserialize)]
struct Order {
    id: String,
    quantity: u32,
    /// Seconds until the goods are there. Absent: they are there.
    #[serde(default)]
    available_in: Option<u64>,
}

fn handle(message: Message) -> Result<Outcome, Failure> {
    let order: Order = message.json()?;
    if order.quantity == 0 {
        return Err(Failure::unacceptable(format!("order {} is for nothing", order.id)));
    }
    Ok(match order.available_in {
        Some(seconds) => Outcome::defer_for(Duration::from_secs(seconds)),
        None => Outcome::ack(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_sdk::{IntoOutcome, Reason};

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
