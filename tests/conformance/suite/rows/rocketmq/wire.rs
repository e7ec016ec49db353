//! RocketMQ as a program uses it that is not ours: requests of the remoting protocol, past the proxy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes};
use pumphouse_contract::{HeaderValue, Outgoing};
use pumphouse_test_brokers::remoting::{Answer, call, code};
use serde_json::{Map, Value, json};

/// How many messages one pull may bring.
const PULL: &str = "32";

/// The flag of a pull that brings its subscription along.
const WITH_SUBSCRIPTION: &str = "4";

/// The answer to a pull from beyond the end of a queue.
const OFFSET_MOVED: i32 = 21;

/// The numbers of every queue of some topics, for a group.
const GET_CONSUME_STATS: i32 = 208;

/// Flags of a message: a body as it is, and one by zlib.
pub(super) const PLAIN: &str = "0";
pub(super) const COMPRESSED: &str = "1";

/// Between a property's name and its value, and after the value.
const NAME_END: char = '\u{1}';
const VALUE_END: char = '\u{2}';

/// The group that looks at queues. What it reads stays there.
pub(super) const LOOKER: &str = "looker";

/// A request that must succeed.
async fn done(broker: &str, code: i32, fields: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
    let answer = call(broker, code, fields, body).await?;
    let remark = answer.remark.as_deref().unwrap_or_default();
    ensure!(answer.code == code::SUCCESS, "{code} was answered {}: {remark}", answer.code);
    Ok(answer)
}

/// Makes a consumer group that other clients are to stop after so many deliveries.
pub(super) async fn make_group(broker: &str, name: &str, fifo: bool, limit: u32) -> Result<()> {
    let group = json!({
        "groupName": name,
        "consumeEnable": true,
        "consumeMessageOrderly": fifo,
        "retryMaxTimes": limit.saturating_sub(1),
    });
    let group = group.to_string();
    done(broker, code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, &[], group.as_bytes()).await?;
    Ok(())
}

/// Whether a topic is there.
pub(super) async fn exists(broker: &str, topic: &str) -> Result<bool> {
    let answer = call(broker, code::GET_TOPIC_CONFIG, &[("topic", topic)], &[]).await?;
    ensure!(
        [code::SUCCESS, code::TOPIC_NOT_EXIST].contains(&answer.code),
        "asking for {topic} was answered {}",
        answer.code
    );
    Ok(answer.code == code::SUCCESS)
}

/// Where a message goes that is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) topic: &'a str,
    pub(super) queues: u32,
    pub(super) fifo: bool,
    /// What the body is said to be: [`PLAIN`] or [`COMPRESSED`].
    pub(super) flag: &'a str,
}

impl Target<'_> {
    /// The queue of a group, as the Java client chooses it.
    fn queue(self, group: Option<&str>, number: u64) -> u64 {
        let queues = u64::from(self.queues);
        match group.filter(|_| self.fifo) {
            Some(group) => u64::from(hash(group).unsigned_abs()) % queues,
            None => number % queues,
        }
    }
}

/// Java's `String.hashCode`.
fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// Sends, with an id as every client makes one. Properties are text, and a body needs no encoding.
pub(super) async fn send(broker: &str, target: Target<'_>, message: Outgoing) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ensure!(message.stamp.is_none(), "a copy is the host's to send");
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    let mut text =
        property("UNIQ_KEY", &format!("7F000001{:08X}{number:016X}", std::process::id()));
    let group = message.ordering_key.as_deref();
    if let Some(group) = group.filter(|_| target.fifo) {
        text.push_str(&property("__SHARDINGKEY", group));
    }
    for (name, value) in message.headers.iter() {
        let (HeaderValue::Text(value) | HeaderValue::Number(value)) = value else {
            bail!("the property {name} can't be bytes");
        };
        text.push_str(&property(name, value));
    }
    let queue = target.queue(group, number).to_string();
    let born = jiff::Timestamp::now().as_millisecond().to_string();
    let fields = [
        ("producerGroup", "another-program"),
        ("topic", target.topic),
        ("defaultTopic", "TBW102"),
        ("defaultTopicQueueNums", "4"),
        ("queueId", &queue),
        ("sysFlag", target.flag),
        ("bornTimestamp", &born),
        ("flag", "0"),
        ("properties", &text),
        ("reconsumeTimes", "0"),
        ("unitMode", "false"),
        ("batch", "false"),
    ];
    done(broker, code::SEND_MESSAGE, &fields, &message.body).await?;
    Ok(())
}

fn property(name: &str, value: &str) -> String {
    format!("{name}{NAME_END}{value}{VALUE_END}")
}

/// A message as a broker keeps it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) queue: u32,
    pub(super) offset: u64,
    pub(super) reconsumed: i32,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) body: Bytes,
}

impl Stored {
    pub(super) fn property(&self, name: &str) -> &str {
        self.properties.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The next message of an answer. The order of its fields is the protocol's.
    fn decode(bytes: &mut Bytes) -> Result<Self> {
        let size = usize::try_from(bytes.try_get_u32()?)?;
        let rest = size.checked_sub(4).filter(|rest| *rest <= bytes.len());
        let mut one = bytes.split_to(rest.context("a message is longer than its answer")?);
        let (_magic, _checksum) = (one.try_get_u32()?, one.try_get_u32()?);
        let (queue, _flag, offset) = (one.try_get_u32()?, one.try_get_u32()?, one.try_get_u64()?);
        let (_physical, _system, _born) =
            (one.try_get_u64()?, one.try_get_u32()?, one.try_get_u64()?);
        // Hosts are of IPv4, on loopback.
        let (_born_host, _stored, _host) =
            (one.try_get_u64()?, one.try_get_u64()?, one.try_get_u64()?);
        let (reconsumed, _prepared) = (one.try_get_i32()?, one.try_get_u64()?);
        let length = one.try_get_u32()?.try_into()?;
        let body = part(&mut one, length)?;
        let length = one.try_get_u8()?.into();
        part(&mut one, length)?;
        let length = one.try_get_u16()?.into();
        let text = String::from_utf8(part(&mut one, length)?.into())?;
        let pairs = text.split(VALUE_END).filter_map(|pair| pair.split_once(NAME_END));
        let properties = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { queue, offset, reconsumed, properties, body })
    }
}

fn part(bytes: &mut Bytes, length: usize) -> Result<Bytes> {
    ensure!(length <= bytes.len(), "a field is longer than its message");
    Ok(bytes.split_to(length))
}

/// What one queue holds from an offset on, at most one answer full.
pub(super) async fn pull(broker: &str, topic: &str, queue: u32, from: u64) -> Result<Vec<Stored>> {
    let (queue, from) = (queue.to_string(), from.to_string());
    let fields = [
        ("consumerGroup", LOOKER),
        ("topic", topic),
        ("queueId", &queue),
        ("queueOffset", &from),
        ("maxMsgNums", PULL),
        ("sysFlag", WITH_SUBSCRIPTION),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "0"),
        ("subscription", "*"),
        ("subVersion", "0"),
        ("expressionType", "TAG"),
    ];
    let mut answer = call(broker, code::PULL_MESSAGE, &fields, &[]).await?;
    match answer.code {
        code::SUCCESS => {}
        code::PULL_NOT_FOUND | code::TOPIC_NOT_EXIST | OFFSET_MOVED => return Ok(Vec::new()),
        other => bail!("a pull of {topic} was answered {other}: {:?}", answer.remark),
    }
    let mut messages = Vec::new();
    while answer.body.has_remaining() {
        messages.push(Stored::decode(&mut answer.body)?);
    }
    Ok(messages)
}

/// How many messages the queues of some topics ever got, and how many of them a group is done with, where it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) sent: u64,
    pub(super) done: u64,
}

pub(super) async fn offsets(broker: &str, group: &str, topics: &[&str]) -> Result<Offsets> {
    let topics = topics.join(";");
    let fields = [("consumerGroup", group), ("topicList", topics.as_str())];
    let answer = done(broker, GET_CONSUME_STATS, &fields, &[]).await?;
    let text = std::str::from_utf8(&answer.body)?;
    Ok(Offsets { sent: sum(text, "brokerOffset")?, done: sum(text, "consumerOffset")? })
}

/// The sum of a field. The text is not quite JSON: its objects have objects for keys.
fn sum(text: &str, field: &str) -> Result<u64> {
    let name = format!("\"{field}\":");
    let numbers = text.split(&name).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest.get(..end).unwrap_or_default();
        digits.parse::<u64>().with_context(|| format!("{field} is not a number: {rest:.20}"))
    });
    numbers.sum()
}

/// The metadata of a copy: properties, plain ones and those that are packed.
pub(super) fn metadata(message: &Stored) -> Result<BTreeMap<String, String>> {
    let mut metadata = message.properties.clone();
    if let Some(packed) = metadata.remove("pumphouse") {
        let packed: Map<String, Value> = serde_json::from_str(&packed)?;
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        metadata.extend(packed.into_iter().filter_map(text));
    }
    Ok(metadata)
}
