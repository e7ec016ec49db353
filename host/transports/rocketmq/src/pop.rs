//! One pop at one broker.

use bytes::{Buf, Bytes};
use cheetah_string::CheetahString;
use pumphouse_contract::ports::Ask;
use pumphouse_contract::{Delivery, Lease};
use rocketmq_protocol::code::request_code::RequestCode;
use rocketmq_protocol::protocol::body::message_codec::{
    DecodedMessageFrame as Frame, decode_message_frame,
};
use rocketmq_protocol::protocol::header::pop_message_request_header::PopMessageRequestHeader;
pub(crate) use rocketmq_protocol::protocol::header::pop_message_response_header::PopMessageResponseHeader as Header;
use rocketmq_protocol::protocol::remoting_command::RemotingCommand;

use crate::calls::{Fault, SUCCESS, exchange, millis};
use crate::incoming::{Popped, Reading, unreadable};
use crate::receipt::{Place, Receipt, with_end};
use crate::routes::Broker;
use crate::{Kind, Rocketmq};

/// The answers that there was nothing: PULL_NOT_FOUND, POLLING_TIMEOUT.
const NOTHING: [i32; 2] = [19, 210];

const POP_CK: &str = "POP_CK";
const RETRY_PREFIX: &str = "%RETRY%";

/// Where a message's queue and its offset in it stand in the message's own bytes.
const QUEUE_AT: usize = 12;
const OFFSET_AT: usize = 20;

/// What is popped.
pub(crate) struct Popper {
    pub(crate) rocketmq: Rocketmq,
    /// This and the group as they are on the wire.
    pub(crate) topic: CheetahString,
    pub(crate) group: CheetahString,
    /// `*` for all.
    pub(crate) tags: CheetahString,
    pub(crate) reading: Reading,
}

impl Popper {
    /// Takes up to `ask.max` messages of one broker, and waits for the first as long as asked. Not cancel-safe.
    pub(crate) async fn pop(&self, broker: &Broker, ask: Ask) -> Result<Vec<Delivery>, Fault> {
        let lease = Lease::from(self.rocketmq.clock.mono(), ask.lease);
        let header = self.header(ask);
        let request = RemotingCommand::create_request_command(RequestCode::PopMessage, header);
        let limit = ask.wait + self.rocketmq.timeouts.poll_margin;
        let mut answer = exchange(&self.rocketmq, &broker.address, request, limit).await?;
        match answer.code() {
            SUCCESS => {}
            code if NOTHING.contains(&code) => return Ok(Vec::new()),
            _ => return Err(Fault::of(&answer)),
        }
        let header = answer.decode_command_custom_header::<Header>().map_err(|error| {
            Fault::unavailable(format!("the answer of a pop can't be read: {error}"))
        })?;
        let body = answer.take_body().unwrap_or_default();
        Ok(deliveries(header, &broker.name, lease, self.reading, body))
    }

    fn header(&self, ask: Ask) -> PopMessageRequestHeader {
        PopMessageRequestHeader {
            consumer_group: self.group.clone(),
            topic: self.topic.clone(),
            // All queues of the broker.
            queue_id: -1,
            max_msg_nums: u32::try_from(ask.max).unwrap_or(u32::MAX),
            invisible_time: millis(ask.lease),
            poll_time: millis(ask.wait),
            // The broker puts its own time in. With ours, clocks half a second apart would end each pop with nothing.
            born_time: 0,
            // A new group begins with the oldest message.
            init_mode: 0,
            exp_type: Some(CheetahString::from_static_str("TAG")),
            exp: Some(self.tags.clone()),
            order: Some(self.reading.kind == Kind::Fifo),
            // One that was used before is given the messages that it was given then.
            attempt_id: Some(format!("{:032x}", rand::random::<u128>()).into()),
            topic_request_header: None,
        }
    }
}

/// Every message of a broker's answer that can be settled.
pub(crate) fn deliveries(
    header: Header,
    broker: &str,
    lease: Lease,
    reading: Reading,
    body: Bytes,
) -> Vec<Delivery> {
    Answer { header, broker, lease, reading }.deliveries(body)
}

/// What a broker answered.
struct Answer<'a> {
    header: Header,
    broker: &'a str,
    lease: Lease,
    reading: Reading,
}

impl Answer<'_> {
    /// Every message that can be settled. What can't is said; its lease lapses.
    fn deliveries(&self, mut body: Bytes) -> Vec<Delivery> {
        let (mut deliveries, mut lost) = (Vec::new(), 0_usize);
        while let Some(bytes) = next(&mut body) {
            let frame = decode_message_frame(&mut bytes.clone());
            let delivery = match frame {
                Ok(frame) => self.readable(frame),
                Err(_) => self.unreadable(bytes),
            };
            match delivery {
                Some(delivery) => deliveries.push(delivery),
                None => lost += 1,
            }
        }
        if lost > 0 || body.has_remaining() {
            let (broker, cut) = (self.broker, body.remaining());
            tracing::warn!(
                broker,
                messages = lost,
                bytes = cut,
                "messages were popped that can't be settled: they come again"
            );
        }
        deliveries
    }

    fn readable(&self, frame: Frame) -> Option<Delivery> {
        let again = frame.reconsume_times > 0 || frame.topic.starts_with(RETRY_PREFIX);
        let place = self.place(frame.queue_id, frame.queue_offset, again);
        let receipt = match self.stored(&frame) {
            Some(stored) => stored,
            None => self.receipt(place?, frame.queue_id, frame.queue_offset)?,
        };
        let ordered = self.reading.kind == Kind::Fifo;
        let counted = place.filter(|_| ordered);
        let counted = counted.and_then(|it| self.times(it, frame.queue_id, frame.queue_offset));
        let reconsume_times = counted.unwrap_or(frame.reconsume_times);
        let receipt = with_end(&receipt, self.lease.until);
        Some(Popped { frame, reconsume_times, receipt }.delivery(self.lease, self.reading))
    }

    fn unreadable(&self, bytes: Bytes) -> Option<Delivery> {
        let queue = bytes.get(QUEUE_AT..).filter(|rest| rest.len() >= 4)?.get_i32();
        let offset = bytes.get(OFFSET_AT..).filter(|rest| rest.len() >= 8)?.get_i64();
        let place = self.place(queue, offset, false)?;
        let receipt = with_end(&self.receipt(place, queue, offset)?, self.lease.until);
        let id = format!("{}-{queue}-{offset}", self.broker);
        Some(unreadable(bytes, id, receipt, self.lease))
    }

    /// The receipt that the broker wrote into the message, as it does for a retry topic. One of another pop is a
    /// sender's, who copied a message with all of its properties.
    fn stored(&self, frame: &Frame) -> Option<String> {
        let text = frame.properties.get(POP_CK)?;
        let receipt = Receipt::read(text)?;
        let ours = receipt.pop_time == self.header.pop_time
            && (receipt.queue, receipt.offset) == (frame.queue_id, frame.queue_offset);
        ours.then(|| text.to_string())
    }

    fn receipt(&self, place: Place, queue: i32, offset: i64) -> Option<String> {
        let starts = self.header.start_offset_info.as_deref()?;
        let start: i64 = entry(starts, place, |key| key.parse() == Ok(queue))?.parse().ok()?;
        let Header { pop_time, invisible_time, revive_qid, .. } = self.header;
        let (sign, broker) = (place.sign(), self.broker);
        Some(format!(
            "{start} {pop_time} {invisible_time} {revive_qid} {sign} {broker} {queue} {offset}"
        ))
    }

    /// Which topic a message lies in: the one of which the answer names it. Both may have one of that queue and offset.
    fn place(&self, queue: i32, offset: i64, again: bool) -> Option<Place> {
        let offsets = self.header.msg_offset_info.as_deref()?;
        let places = if again {
            [Place::Retry, Place::RetryPlus, Place::Topic]
        } else {
            [Place::Topic, Place::Retry, Place::RetryPlus]
        };
        places.into_iter().find(|place| {
            let list = entry(offsets, *place, |key| key.parse() == Ok(queue));
            list.is_some_and(|list| list.split(',').any(|it| it.parse() == Ok(offset)))
        })
    }

    /// How often a FIFO topic's message was given before: its own number, else its queue's; none where it is the
    /// first time.
    fn times(&self, place: Place, queue: i32, offset: i64) -> Option<i32> {
        let counts = self.header.order_count_info.as_deref()?;
        let own = |key: &str| {
            let parts = key.strip_prefix("qo").and_then(|key| key.split_once('%'));
            parts.is_some_and(|(q, o)| q.parse() == Ok(queue) && o.parse() == Ok(offset))
        };
        let count = entry(counts, place, own)
            .or_else(|| entry(counts, place, |key| key.parse() == Ok(queue)))?;
        count.parse().ok()
    }
}

/// One message's bytes.
fn next(body: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(body.as_ref().try_get_i32().ok()?).ok()?;
    (4..=body.len()).contains(&length).then(|| body.split_to(length))
}

/// The value of a list of entries `place key value`, parted by `;`.
fn entry(list: &str, place: Place, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    list.split(';').find_map(|entry| {
        let (sign, rest) = entry.split_once(' ')?;
        let (key, value) = rest.split_once(' ')?;
        (sign == place.sign() && is_it(key)).then_some(value)
    })
}

#[cfg(test)]
#[path = "pop_tests.rs"]
mod tests;
