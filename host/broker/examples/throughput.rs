//! How many messages a second go through the broker: published, received and settled.
//!
//! `cargo run --release -p pumphouse-broker --example throughput [SECONDS] [DIRECTORY]`: the durable broker's store is
//! made in a new directory under the one that is named, else under the system's temporary one. What is slow there is
//! the disk's sync, so measure where the state will be.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]
#![allow(clippy::expect_used, reason = "a measurement that fails has nothing to say")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use pumphouse_broker::Broker;
use pumphouse_contract::ports::{Action, Ask, Settlement, Sink, Source};
use pumphouse_contract::{Clock, Delivery, Mono, Outgoing, Timestamp};

const BODY: &[u8] = &[7; 1024];
const LEASE: Duration = Duration::from_secs(60);

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn mono(&self) -> Mono {
        Mono(self.0.elapsed())
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock(Instant::now()))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3);
    let length = Duration::from_secs(seconds);
    for (tasks, batch) in [(1, 1), (1, 10), (1, 64), (2, 64)] {
        let broker = Broker::memory(clock());
        let rate = run(&broker, tasks, batch, length).await;
        println!("memory   tasks {tasks:>3}  batch {batch:>3}  {rate:>9.0} msg/s");
    }
    let parent = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    for callers in [1, 32, 128] {
        let directory = parent.join(format!("pumphouse-throughput-{}", std::process::id()));
        let broker = Broker::open(&directory, clock()).await.expect("the broker opens");
        let rate = run(&broker, callers, 1, length).await;
        broker.close().await;
        std::fs::remove_dir_all(&directory).expect("the directory is removed");
        println!("durable  callers {callers:>3}        {rate:>9.0} msg/s");
    }
}

/// Messages a second, each task publishing, receiving and settling `batch` messages at a time.
async fn run(broker: &Broker, tasks: usize, batch: usize, length: Duration) -> f64 {
    broker.create("queue").await.expect("a queue");
    let settled = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let source = broker.source("queue").expect("a source");
            let sink = broker.sink("queue").expect("a sink");
            let settled = Arc::clone(&settled);
            tokio::spawn(async move {
                while began.elapsed() < length {
                    let count = turn(source.as_ref(), sink.as_ref(), batch).await;
                    settled.fetch_add(count, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task ends");
    }
    let settled = u32::try_from(settled.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
    f64::from(settled) / began.elapsed().as_secs_f64()
}

async fn turn(source: &dyn Source, sink: &dyn Sink, batch: usize) -> u64 {
    for _ in 0..batch {
        let outgoing = Outgoing { body: Bytes::from_static(BODY), ..Outgoing::default() };
        sink.publish(outgoing).await.expect("published");
    }
    let ask = Ask { max: batch, wait: Duration::ZERO, lease: LEASE };
    let deliveries = source.receive(ask).await.expect("received");
    let ack = |one: Delivery| Settlement { receipt: one.receipt, action: Action::Ack };
    let answers = source.settle(deliveries.into_iter().map(ack).collect()).await;
    answers.iter().filter(|answer| answer.is_ok()).count() as u64
}
