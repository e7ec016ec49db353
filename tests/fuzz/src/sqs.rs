//! The wire of SQS and SNS.

use pumphouse_contract::Counted;
use pumphouse_sqs::fuzzing::{Received, fits, received};

use crate::input::Input;
use crate::rejected::{again, copy};

const DATA_TYPES: [&str; 6] = ["String", "Number", "Binary", "String.uuid", "Number.int", "Odd"];
const SYSTEM: [&str; 6] = [
    "SentTimestamp",
    "ApproximateFirstReceiveTimestamp",
    "MessageGroupId",
    "AWSTraceHeader",
    "SequenceNumber",
    "ApproximateReceiveCount",
];

/// Reads a message of SQS: flags, the attributes, SQS's own, the body.
///
/// # Panics
/// Where it has no delivery, though it has all that a delivery needs, or its count is another than it says.
pub fn sqs(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let mut message =
        Received { enveloped: flags & 1 != 0, rejected: flags & 2 != 0, ..Received::default() };
    for _ in 0..input.byte() % 16 {
        let data_type = pick(&DATA_TYPES, input.byte());
        message.attributes.push((input.text(), data_type, input.bytes().to_vec()));
    }
    for _ in 0..input.byte() % 8 {
        message.system.push((pick(&SYSTEM, input.byte()), input.text()));
    }
    message.system.push(("ApproximateReceiveCount".into(), (input.byte()).to_string()));
    message.body = String::from_utf8_lossy(input.rest()).into_owned();
    let count = message.system.last().map(|(_, text)| text.clone()).unwrap_or_default();
    let delivery = received(message).expect("a delivery");
    assert_eq!(delivery.counted == Counted::Unreported, count == "0", "{count}");
    for fifo in [false, true] {
        std::hint::black_box((fits(copy(&delivery), fifo), fits(again(&delivery), fifo)));
    }
}

fn pick(from: &[&str], by: u8) -> String {
    from.get(usize::from(by) % from.len()).copied().unwrap_or_default().to_owned()
}
