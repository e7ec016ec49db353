//! A broker on this machine, and topics with messages in them.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, BytesMut};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pumphouse_rocketmq::Kind;
use pumphouse_test_brokers::remoting::{call, code};
use pumphouse_test_brokers::{RocketMq, Setup, TopicKind};

use super::Setting;
use crate::message;

const PUBLISHERS: usize = 2;
const MOST_PUBLISHED: usize = 250;
/// Message groups of each queue of a FIFO topic.
const GROUPS: usize = 8;

pub(super) struct Server {
    servers: RocketMq,
    broker: String,
}

/// A topic and its consumer group.
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) setting: Setting,
}

impl Topic {
    pub(super) fn new(name: String, setting: Setting) -> Self {
        let name = name.to_lowercase();
        Self { group: format!("{name}-work"), name, setting }
    }

    fn is_ordered(&self) -> bool {
        self.setting.kind == Kind::Fifo
    }
}

impl Server {
    pub(super) async fn start() -> Result<Self> {
        let servers = RocketMq::start(Setup::default()).await?;
        let broker = servers.brokers().into_iter().next().context("no broker was started")?;
        Ok(Self { servers, broker })
    }

    pub(super) fn namesrv(&self) -> String {
        self.servers.namesrv()
    }

    /// Makes a topic and its group, and sends so many messages there, evenly over the queues.
    pub(super) async fn fill(&self, topic: &Topic, messages: usize) -> Result<()> {
        let Topic { name, group, setting } = topic;
        let kind = if topic.is_ordered() { TopicKind::Fifo } else { TopicKind::Normal };
        self.servers.create_topic(name, setting.queues, kind).await?;
        self.servers.create_group(group, topic.is_ordered()).await?;
        let queues = usize::try_from(setting.queues)?;
        let parts = (0..queues).flat_map(|queue| {
            let many = messages / queues + usize::from(queue < messages % queues);
            let batches = (0..many).step_by(MOST_PUBLISHED);
            batches.map(move |from| (queue, MOST_PUBLISHED.min(many - from)))
        });
        let sent = stream::iter(parts).map(|(queue, many)| self.send(topic, queue, many));
        sent.buffer_unordered(PUBLISHERS).try_for_each(|()| async { Ok(()) }).await
    }

    /// Sends a batch to one queue. The broker stores it as messages of their own.
    async fn send(&self, topic: &Topic, queue: usize, many: usize) -> Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let (born, queue_text) = (since.as_millis().to_string(), queue.to_string());
        let mut body = BytesMut::new();
        for number in 0..many {
            let id = format!("{:016X}{number:016X}", since.as_nanos());
            let group = topic.is_ordered().then(|| format!("{queue}-{}", number % GROUPS));
            append(&mut body, &id, group.as_deref());
        }
        let fields = [
            ("a", "bench"),
            ("b", &topic.name),
            ("c", "TBW102"),
            ("d", "1"),
            ("e", &queue_text),
            ("f", "0"),
            ("g", &born),
            ("h", "0"),
            ("i", ""),
            ("j", "0"),
            ("k", "false"),
            ("m", "true"),
        ];
        let answer = call(&self.broker, code::SEND_BATCH_MESSAGE, &fields, &body).await?;
        ensure!(answer.code == code::SUCCESS, "not sent: {:?}", answer.remark);
        Ok(())
    }
}

/// One message of a batch: lengths before parts, and the rest unused.
fn append(batch: &mut BytesMut, id: &str, group: Option<&str>) {
    let (name, value) = message::HEADER;
    let mut properties = format!("{name}\u{1}{value}\u{2}UNIQ_KEY\u{1}{id}\u{2}");
    if let Some(group) = group {
        properties.push_str("__SHARDINGKEY\u{1}");
        properties.push_str(group);
        properties.push('\u{2}');
    }
    let text = message::text();
    let mut rest = BytesMut::new();
    // Magic code, checksum, flag.
    rest.put_bytes(0, 3 * size_of::<i32>());
    rest.put_i32(length(&text));
    rest.put_slice(text.as_bytes());
    rest.put_i16(i16::try_from(properties.len()).unwrap_or_default());
    rest.put_slice(properties.as_bytes());
    batch.put_i32(length(&rest) + length(&[0; size_of::<i32>()]));
    batch.put_slice(&rest);
}

/// A message has some hundred bytes.
fn length(part: &(impl AsRef<[u8]> + ?Sized)) -> i32 {
    i32::try_from(part.as_ref().len()).unwrap_or_default()
}
