//! The pump on RocketMQ beside a loop of pops on the same client, on the same broker.

mod plain;
mod server;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use pumphouse_contract::Clock;
use pumphouse_pump::SystemClock;
use pumphouse_rocketmq::{Kind, Provision, Rocketmq, RocketmqSettings, SourceSpec};

use self::plain::{Client, Work};
use self::server::{Server, Topic};
use crate::cores::Cores;
use crate::counted::Counted;
use crate::io;
use crate::measure::Sample;
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::Line;
use crate::turns::{Side, turns};

const LEASE: Duration = Duration::from_secs(60);

/// What is measured of one kind of topic, the same for both sides.
#[derive(Clone, Copy)]
struct Setting {
    who: &'static str,
    kind: Kind,
    rounds: usize,
    queues: u32,
    messages: usize,
    /// The most messages of one pop.
    batch: usize,
    /// Pops at once.
    pollers: usize,
    /// Messages in progress at once.
    concurrency: usize,
}

const NORMAL: Setting = Setting {
    who: "rocketmq, normal",
    kind: Kind::Normal,
    rounds: 12,
    queues: 8,
    messages: 10_000,
    batch: 32,
    pollers: 8,
    concurrency: 256,
};

/// One message a pop, as a pump asks: several of a queue in one answer would be counted once more each where the
/// first of them goes back.
const FIFO: Setting = Setting {
    who: "rocketmq, fifo",
    kind: Kind::Fifo,
    // Neighbours differ by a factor of three.
    rounds: 40,
    queues: 16,
    messages: 5_000,
    batch: 1,
    pollers: 8,
    concurrency: 16,
};

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let cores = Cores::part();
    io::run(measure(options, cores.as_ref()))
}

async fn measure(options: &Options, cores: Option<&Cores>) -> Result<Vec<Line>> {
    let bench = Bench::start().await?;
    cores.inspect(|cores| cores.move_servers());
    let mut lines = Vec::new();
    for setting in [NORMAL, FIFO] {
        lines.extend(bench.compare(options, setting).await?);
    }
    bench.end().await;
    Ok(lines)
}

struct Bench {
    server: Server,
    plain: Client,
    rocketmq: Rocketmq,
}

impl Bench {
    async fn start() -> Result<Self> {
        let server = Server::start().await?;
        let plain = Client::connect(&server.namesrv()).await?;
        let settings = RocketmqSettings::new(vec![server.namesrv()], clock());
        let rocketmq = Rocketmq::connect(settings).await?;
        Ok(Self { server, plain, rocketmq })
    }

    async fn end(self) {
        self.plain.close().await;
        self.rocketmq.close().await;
    }

    async fn compare(&self, options: &Options, setting: Setting) -> Result<Vec<Line>> {
        let messages = options.scaled(setting.messages);
        let (mut plain, mut pumped) = (Side::default(), Side::default());
        for turn in turns(options.scaled(setting.rounds)) {
            let topic = Topic::new(format!("{:?}-{turn}", setting.kind), setting);
            self.server.fill(&topic, messages).await?;
            let (side, (sample, requests)) = if turn.is_pump() {
                (&mut pumped, self.pump(&topic, messages).await?)
            } else {
                let work = Work { setting, topic: topic.name, group: topic.group, messages };
                (&mut plain, plain::consume(&self.plain, work).await?)
            };
            side.add(turn, sample, requests, messages);
        }
        let mut lines = pumped.lines(setting.who, "plain", &plain);
        lines.push(plain.asked(&format!("{}, plain", setting.who)));
        Ok(lines)
    }

    /// What each message cost, and how many requests all of them took.
    async fn pump(&self, topic: &Topic, messages: usize) -> Result<(Sample, usize)> {
        let Setting { kind, queues, concurrency, .. } = topic.setting;
        let spec = SourceSpec {
            kind,
            queues,
            lease: LEASE,
            ..SourceSpec::new(topic.name.clone(), topic.group.clone(), Provision::Validate)
        };
        let counted = Counted::new(self.rocketmq.source(spec).await?);
        let (source, handler) = (counted.clone(), Arc::new(Native));
        let pumping = Pumping { source, handler, clock: clock(), concurrency, messages };
        let sample = pumping.run().await?;
        Ok((sample, counted.single_requests()))
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
