//! How many messages a group has left of a topic, told by RocketMQ itself.
//!
//! On a FIFO topic the group's offset says it: a queue's goes on when its head is acknowledged, and not before. On a
//! normal topic no number says it. A message there is popped once, and what becomes of it stands in the broker's own
//! log of check points: one for each pop and each change of a lease, and one line for each acknowledgement. The broker
//! puts a message on the group's retry topic when it finds a check point that lapsed without one; so does this: a
//! message is gone when every check point of its last copy is acknowledged. Reading takes nothing away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::wire::{self, Offsets, Stored};

/// Where check points wait until their lease is over, and where they go then.
const WAITING: &str = "rmq_sys_wheel_timer";
const DUE: &str = "rmq_sys_REVIVE_LOG_test";

/// A place in a queue, for a group: topic, group, queue, offset.
type Spot = (String, String, u32, u64);

/// A check point: some messages of one pop, until a time.
#[derive(Debug, Deserialize)]
struct CheckPoint {
    #[serde(rename = "so")]
    start: u64,
    #[serde(rename = "pt")]
    popped: u64,
    #[serde(rename = "n")]
    messages: u64,
    #[serde(rename = "q")]
    queue: u32,
    #[serde(rename = "t")]
    topic: String,
    #[serde(rename = "c")]
    group: String,
    /// The offsets of its messages, from the start.
    #[serde(rename = "d", default)]
    distances: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct Acknowledged {
    #[serde(rename = "ao")]
    offset: u64,
    #[serde(rename = "so")]
    start: u64,
    #[serde(rename = "pt")]
    popped: u64,
    #[serde(rename = "q")]
    queue: u32,
    #[serde(rename = "t")]
    topic: String,
    #[serde(rename = "c")]
    group: String,
}

/// Which check point of a spot: where its pop began, and when it was.
type Pop = (u64, u64);

#[derive(Debug, Default)]
struct Pages {
    /// What was read of each queue: topic, queue, next offset.
    read: Vec<(&'static str, u32, u64)>,
    points: BTreeMap<Spot, BTreeSet<Pop>>,
    /// Acknowledgements that were read and don't hold yet.
    fresh: Vec<(Spot, Pop)>,
    acknowledged: BTreeMap<Spot, BTreeSet<Pop>>,
    /// When the last look began.
    at: Option<Instant>,
}

/// The broker's log of check points, as far as it was read.
#[derive(Debug)]
pub(super) struct Log {
    broker: String,
    pages: Mutex<Pages>,
}

impl Log {
    pub(super) fn new(broker: &str, queues: u32) -> Self {
        let due = (0..queues).map(|queue| (DUE, queue, 0));
        let read = std::iter::once((WAITING, 0, 0)).chain(due).collect();
        let pages = Mutex::new(Pages { read, ..Pages::default() });
        Self { broker: broker.to_owned(), pages }
    }

    /// How many of these are not gone, after a look that begins now or later.
    async fn left(&self, spots: impl Iterator<Item = Spot>) -> Result<u64> {
        let asked = Instant::now();
        let mut pages = self.pages.lock().await;
        if pages.at.is_none_or(|at| at < asked) {
            pages.at = Some(Instant::now());
            self.look(&mut pages).await?;
        }
        Ok(spots.filter(|spot| !pages.is_gone(spot)).count() as u64)
    }

    /// A change of a lease is a new check point and then an acknowledgement of the old one. They may stand in two
    /// queues, so an acknowledgement holds only when every queue was read once more after it.
    async fn look(&self, pages: &mut Pages) -> Result<()> {
        self.read_on(pages).await?;
        let fresh = std::mem::take(&mut pages.fresh);
        if !fresh.is_empty() {
            self.read_on(pages).await?;
        }
        for (spot, pop) in fresh {
            pages.acknowledged.entry(spot).or_default().insert(pop);
        }
        Ok(())
    }

    async fn read_on(&self, pages: &mut Pages) -> Result<()> {
        for at in 0..pages.read.len() {
            while let Some((topic, queue, from)) = pages.read.get(at).copied() {
                let lines = wire::pull(&self.broker, topic, queue, from).await?;
                let Some(last) = lines.last() else { break };
                let next = last.offset + 1;
                for line in &lines {
                    pages.note(line)?;
                }
                if let Some(read) = pages.read.get_mut(at) {
                    read.2 = next;
                }
            }
        }
        Ok(())
    }
}

impl Pages {
    fn note(&mut self, line: &Stored) -> Result<()> {
        match line.property("TAGS") {
            "ck" => {
                let point: CheckPoint = serde_json::from_slice(&line.body)?;
                for offset in point.offsets() {
                    let spot = (point.topic.clone(), point.group.clone(), point.queue, offset);
                    self.points.entry(spot).or_default().insert((point.start, point.popped));
                }
            }
            "ack" => {
                let Acknowledged { offset, start, popped, queue, topic, group } =
                    serde_json::from_slice(&line.body)?;
                let spot = (topic, group, queue, offset);
                self.fresh.push((spot, (start, popped)));
            }
            _ => {}
        }
        Ok(())
    }

    fn is_gone(&self, spot: &Spot) -> bool {
        let acknowledged = self.acknowledged.get(spot);
        let points = self.points.get(spot);
        points.zip(acknowledged).is_some_and(|(points, done)| points.is_subset(done))
    }
}

impl CheckPoint {
    fn offsets(&self) -> Vec<u64> {
        if self.distances.is_empty() {
            return (self.start..self.start + self.messages).collect();
        }
        self.distances.iter().map(|distance| self.start + distance).collect()
    }
}

/// What is read of a topic and of its group's retry topic.
#[derive(Debug, Default)]
struct Copies {
    offsets: Option<Offsets>,
    /// What was read of each queue.
    read: BTreeMap<(String, u32), u64>,
    /// The last copy of each message by its id: how often it came back, and where it is.
    last: BTreeMap<String, (i32, Spot)>,
}

/// The backlog of one queue: a topic and a group of one name. It is no destination: nothing can be published to it.
pub(super) struct Backlog {
    log: Arc<Log>,
    queue: String,
    queues: u32,
    fifo: bool,
    copies: Mutex<Copies>,
}

impl Backlog {
    pub(super) fn new(log: &Arc<Log>, queue: &str, queues: u32, fifo: bool) -> Self {
        let copies = Mutex::default();
        Self { log: log.clone(), queue: queue.to_owned(), queues, fifo, copies }
    }

    fn retry_topic(&self) -> String {
        format!("%RETRY%{0}_{0}", self.queue)
    }

    async fn count(&self) -> Result<u64> {
        let retry = self.retry_topic();
        let topics = [self.queue.as_str(), &retry];
        let offsets = wire::offsets(&self.log.broker, &self.queue, &topics).await?;
        if self.fifo {
            return Ok(offsets.sent.saturating_sub(offsets.done));
        }
        let mut copies = self.copies.lock().await;
        if copies.offsets != Some(offsets) {
            for queue in 0..self.queues {
                self.read_on(&mut copies, &self.queue, queue).await?;
            }
            self.read_on(&mut copies, &retry, 0).await?;
            copies.offsets = Some(offsets);
        }
        let spots: Vec<Spot> = copies.last.values().map(|(_, spot)| spot.clone()).collect();
        self.log.left(spots.into_iter()).await
    }

    async fn read_on(&self, copies: &mut Copies, topic: &str, queue: u32) -> Result<()> {
        let place = (topic.to_owned(), queue);
        loop {
            let from = copies.read.get(&place).copied().unwrap_or_default();
            let messages = wire::pull(&self.log.broker, topic, queue, from).await?;
            let Some(last) = messages.last() else { return Ok(()) };
            copies.read.insert(place.clone(), last.offset + 1);
            for message in &messages {
                let spot = (topic.to_owned(), self.queue.clone(), message.queue, message.offset);
                let id = message.property("UNIQ_KEY").to_owned();
                let known =
                    copies.last.get(&id).is_some_and(|(times, _)| *times > message.reconsumed);
                if !known {
                    copies.last.insert(id, (message.reconsumed, spot));
                }
            }
        }
    }
}

impl Sink for Backlog {
    fn name(&self) -> &str {
        &self.queue
    }

    fn publish(&self, _: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        let refused = PublishError::Refused(self.queue.clone(), "it only counts".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async {
            let unavailable = |error: anyhow::Error| {
                PublishError::Unavailable(self.queue.clone(), format!("{error:#}"))
            };
            let messages = self.count().await.map_err(unavailable)?;
            Ok(Depth { messages: Some(messages), oldest_age: None })
        })
    }
}
