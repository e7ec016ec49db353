//! Panics two functions down, with a message that the host should show.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    look_up_customer(message.body.len());
    Outcome::ack()
}

#[inline(never)]
fn look_up_customer(order: usize) {
    read_customer_record(std::hint::black_box(order));
}

#[inline(never)]
fn read_customer_record(order: usize) {
    panic!("order of {order} bytes has no customer");
}
