//! The wire of RocketMQ.

use pumphouse_rocketmq::fuzzing::{Popped, fits, inflated, is_receipt, popped};

use crate::input::Input;
use crate::rejected::{again, copy};

/// What a compressed body may become, in bytes.
const MOST: usize = 64 << 20;

/// Reads the answer to a pop: flags, the three lists, the time, the messages. The messages are read as a receipt and as a
/// compressed body, too.
///
/// # Panics
/// Where a delivery has no receipt that is read again, or a body becomes larger than it may.
pub fn rocketmq(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let [starts, offsets, counts] = [input.text(), input.text(), input.text()];
    let pop_time = input.number();
    let body = input.rest();
    let list = |text: &str, bit: u8| (flags & bit == 0).then(|| text.to_owned());
    let (starts, offsets, counts) = (list(&starts, 1), list(&offsets, 2), list(&counts, 4));
    let answer = Popped {
        starts: starts.as_deref(),
        offsets: offsets.as_deref(),
        counts: counts.as_deref(),
        pop_time,
        fifo: flags & 8 != 0,
        rejected: flags & 16 != 0,
        body,
    };
    for delivery in popped(answer) {
        let fifo = flags & 8 != 0;
        std::hint::black_box((fits(copy(&delivery), fifo), fits(again(&delivery), fifo)));
        assert!(is_receipt(&delivery.receipt.as_text()), "{:?}", delivery.receipt.as_text());
    }
    std::hint::black_box(is_receipt(&String::from_utf8_lossy(body)));
    let grown = inflated(body, i32::from(u16::from(flags) << 3 | 1));
    assert!(grown.is_none_or(|length| length <= MOST), "{grown:?}");
}
