//! What settles a delivery: RocketMQ's own receipt (`POP_CK`), which holds all that a settlement needs, and until when
//! the lease is ours, by our own clock.
//!
//! RocketMQ's parts, with a space between them: the queue's offset where the pop began, the time of the pop, the invisible
//! time, the revive queue, which topic, the broker's name, the queue, and the message's offset in it. Times are in
//! milliseconds and the broker's.

use std::time::Duration;

use pumphouse_contract::Mono;
use rocketmq_model::common::key_builder::KeyBuilder;

const PARTS: usize = 8;

/// What parts RocketMQ's receipt from what is ours.
const OURS: char = '|';

/// Which topic a message lies in. What is redelivered of a normal topic lies in a retry topic of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The topic itself.
    Topic,
    /// The group's retry topic, as `%RETRY%group_topic`.
    Retry,
    /// The same where the broker has `enableRetryTopicV2`: `%RETRY%group+topic`.
    RetryPlus,
}

impl Place {
    /// By its sign in receipts and in the answers of a pop.
    pub(crate) fn from_sign(sign: &str) -> Option<Self> {
        match sign {
            "0" => Some(Self::Topic),
            "1" => Some(Self::Retry),
            "2" => Some(Self::RetryPlus),
            _ => None,
        }
    }

    /// As receipts and the answers of a pop spell it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Topic => "0",
            Self::Retry => "1",
            Self::RetryPlus => "2",
        }
    }

    /// The topic's name; both as they are on the wire.
    pub(crate) fn name(self, topic: &str, group: &str) -> String {
        match self {
            Self::Topic => topic.to_owned(),
            Self::Retry => KeyBuilder::build_pop_retry_topic_v1(topic, group),
            Self::RetryPlus => KeyBuilder::build_pop_retry_topic_v2(topic, group),
        }
    }
}

/// A receipt that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt<'a> {
    /// RocketMQ's own.
    pub(crate) theirs: &'a str,
    /// Until when the message is ours, to the millisecond; none where nothing was said.
    pub(crate) until: Option<Mono>,
    /// When it was popped, in milliseconds by the broker's clock.
    pub(crate) pop_time: u64,
    pub(crate) place: Place,
    pub(crate) broker: &'a str,
    pub(crate) queue: i32,
    pub(crate) offset: i64,
}

impl<'a> Receipt<'a> {
    /// Reads one; none where it is no receipt of RocketMQ's.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let (theirs, until) = match text.rsplit_once(OURS) {
            Some((theirs, until)) => (theirs, Some(until.parse().ok()?)),
            None => (text, None),
        };
        let mut rest = theirs.split(' ');
        let mut parts = [""; PARTS];
        for part in &mut parts {
            *part = rest.next()?;
        }
        let [start, pop_time, invisible, revive, place, broker, queue, offset] = parts;
        let numbers = [start, invisible, revive].into_iter().all(|it| it.parse::<i64>().is_ok());
        (numbers && !broker.is_empty()).then_some(())?;
        Some(Self {
            theirs,
            until: until.map(|millis| Mono(Duration::from_millis(millis))),
            pop_time: pop_time.parse().ok()?,
            place: Place::from_sign(place)?,
            broker,
            queue: queue.parse().ok()?,
            offset: offset.parse().ok()?,
        })
    }
}

/// RocketMQ's receipt, and until when the message is ours.
pub(crate) fn with_end(theirs: &str, until: Mono) -> String {
    format!("{theirs}{OURS}{}", until.0.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read() {
        let text = "17 1700000000123 30000 3 1 broker-0 5 42";
        let read = Receipt::read(text).expect("a receipt");
        let expected = Receipt {
            theirs: text,
            until: None,
            pop_time: 1_700_000_000_123,
            place: Place::Retry,
            broker: "broker-0",
            queue: 5,
            offset: 42,
        };
        assert_eq!(read, expected);
        // Other brokers put more behind it.
        let longer = format!("{text} 7");
        assert_eq!(Receipt::read(&longer), Some(Receipt { theirs: &longer, ..expected }));
        let until = Mono(Duration::from_millis(1_500));
        let ours = with_end(text, until);
        assert_eq!(Receipt::read(&ours), Some(Receipt { until: Some(until), ..expected }));
    }

    #[test]
    fn what_is_no_receipt_is_none() {
        for text in [
            "",
            "x",
            "17 1700000000123 30000 3 1 broker-0 5",
            "x 1700000000123 30000 3 1 broker-0 5 42",
            "17 -1 30000 3 1 broker-0 5 42",
            "17 1700000000123 30000 3 9 broker-0 5 42",
            "17 1700000000123 30000 3 1  5 42",
            "17 1700000000123 30000 3 1 broker-0 x 42",
            "17 1700000000123 30000 3 1 broker-0 5 42|x",
            "|5",
        ] {
            assert_eq!(Receipt::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_place_has_a_name() {
        for (sign, name) in [
            ("0", "acme%orders"),
            ("1", "%RETRY%acme%work_acme%orders"),
            ("2", "%RETRY%acme%work+acme%orders"),
        ] {
            let place = Place::from_sign(sign).expect("a place");
            assert_eq!(place.name("acme%orders", "acme%work"), name);
            assert_eq!(place.sign(), sign);
        }
    }
}
