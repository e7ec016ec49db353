//! Honest, and busy: computes as many turns as the body says and acknowledges. The hostile guests are compared with
//! this one, since a neighbour may be slowed down by anybody who has work to do.

use pumphouse_sdk::{Failure, Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Result<Outcome, Failure> {
    let turns: u64 = message.body_str()?.trim().parse().map_err(Failure::unacceptable)?;
    let mut state = turns | 1;
    for _ in 0..turns {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17));
    }
    std::hint::black_box(state);
    Ok(Outcome::ack())
}
