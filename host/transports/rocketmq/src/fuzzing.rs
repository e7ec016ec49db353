//! The ways between the wire and a message, for fuzzing. Not for use.

use std::time::Duration;

use bytes::Bytes;
use pumphouse_contract::{Delivery, Lease, Mono, Outgoing};

use crate::incoming::Reading;
use crate::outgoing::fit;
use crate::{Kind, inflate, pop, receipt};

/// An answer to a pop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Popped<'a> {
    /// Where the queues began.
    pub starts: Option<&'a str>,
    /// Which messages there are.
    pub offsets: Option<&'a str>,
    /// How often each of an ordered topic was given before.
    pub counts: Option<&'a str>,
    /// When, by the broker's clock.
    pub pop_time: u64,
    /// Whether the topic is an ordered one.
    pub fifo: bool,
    /// Whether it is a rejection destination.
    pub rejected: bool,
    /// The messages.
    pub body: &'a [u8],
}

/// The deliveries of an answer.
#[must_use]
pub fn popped(answer: Popped<'_>) -> Vec<Delivery> {
    let reading = Reading { kind: kind(answer.fifo), rejected: answer.rejected };
    let header = pop::Header {
        pop_time: answer.pop_time,
        invisible_time: 30_000,
        revive_qid: 4,
        rest_num: 0,
        start_offset_info: answer.starts.map(Into::into),
        msg_offset_info: answer.offsets.map(Into::into),
        order_count_info: answer.counts.map(Into::into),
    };
    let lease = Lease::from(Mono::default(), Duration::from_secs(30));
    pop::deliveries(header, "broker", lease, reading, Bytes::copy_from_slice(answer.body))
}

/// Whether a receipt is read as one.
#[must_use]
pub fn is_receipt(text: &str) -> bool {
    receipt::Receipt::read(text).is_some()
}

/// How long a body becomes that its sender compressed; none where it can't be had.
#[must_use]
pub fn inflated(body: &[u8], flags: i32) -> Option<usize> {
    inflate::inflate(Bytes::copy_from_slice(body), flags).ok().map(|body| body.len())
}

/// Whether a message can be made to fit a topic, ordered or not.
#[must_use]
pub fn fits(message: Outgoing, fifo: bool) -> bool {
    fit(message, kind(fifo), "id").is_ok()
}

fn kind(fifo: bool) -> Kind {
    if fifo { Kind::Fifo } else { Kind::Normal }
}
