//! The pump on Pub/Sub, on the same emulator as what it is compared with: one that pulls beside a plain loop of pulls,
//! one that is pushed to beside the subscriber of Google's library.

mod library;
mod plain;
mod server;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use google_cloud_pubsub::client::Subscriber;
use pumphouse_contract::Clock;
use pumphouse_pubsub::{Mode, Provision, Pubsub, SourceSpec};
use pumphouse_pump::SystemClock;
use tokio::runtime::Builder;

use self::plain::Client;
use self::server::Server;
use crate::counted::Counted;
use crate::measure::{CPU, RATE, Sample, Series};
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::{Line, Target};

const ROUNDS: usize = 20;
const PULLED: usize = 10_000;
/// The emulator pushes a hundred each twentieth of a second: more of them would show the same for longer.
const PUSHED: usize = 2_000;
/// Pulls at once, the same on both sides.
const POLLERS: usize = 4;
/// The most messages of one pull: the emulator gives no more, whatever it is asked for.
const BATCH: usize = 100;
/// Messages per second beside those of the baseline.
const LEAST_RATE: f64 = 0.95;
const LEASE: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let runtime = Builder::new_multi_thread().thread_name("bench-io").enable_all().build()?;
    let lines = runtime.block_on(measure(options));
    runtime.shutdown_background();
    lines
}

async fn measure(options: &Options) -> Result<Vec<Line>> {
    let bench = Bench::start().await?;
    let rounds = options.scaled(ROUNDS);
    let mut lines = bench.pulling(rounds, options.scaled(PULLED)).await?;
    lines.extend(bench.streaming(rounds, options.scaled(PUSHED)).await?);
    Ok(lines)
}

struct Bench {
    server: Server,
    library: Subscriber,
    plain: Client,
    pubsub: Pubsub,
}

impl Bench {
    async fn start() -> Result<Self> {
        let server = Server::start().await?;
        let library = library::client(&server.endpoint()).await?;
        let plain = Client::connect(&server.endpoint()).await?;
        let pubsub = Pubsub::connect(server.settings(clock())).await?;
        Ok(Self { server, library, plain, pubsub })
    }

    /// A pump that pulls beside a loop that does.
    async fn pulling(&self, rounds: usize, messages: usize) -> Result<Vec<Line>> {
        let (mut plain, mut pumped) = (Series::default(), Pumped::default());
        for turn in turns(rounds) {
            let at = self.server.filled(&format!("pull-{turn}"), LEASE, messages).await?;
            if turn.is_pump() {
                pumped.add(self.pump(Mode::Pull, &at.subscription, messages).await?);
            } else {
                plain.add(plain::consume(&self.plain, &at.subscription, messages).await?);
            }
            self.server.delete(at).await?;
        }
        Ok(pumped.lines("pull", ("plain", &plain), rounds * messages))
    }

    /// A pump that is pushed to beside the subscriber of Google's library, which is too.
    async fn streaming(&self, rounds: usize, messages: usize) -> Result<Vec<Line>> {
        let (mut library, mut pumped) = (Series::default(), Pumped::default());
        for turn in turns(rounds) {
            let at = self.server.filled(&format!("stream-{turn}"), LEASE, messages).await?;
            if turn.is_pump() {
                pumped.add(self.pump(Mode::Stream, &at.subscription, messages).await?);
            } else {
                library.add(library::consume(&self.library, &at.subscription, messages).await?);
            }
            self.server.delete(at).await?;
        }
        Ok(pumped.lines("stream", ("library", &library), rounds * messages))
    }

    /// What each message cost, and how many requests all of them took.
    async fn pump(
        &self,
        mode: Mode,
        subscription: &str,
        messages: usize,
    ) -> Result<(Sample, usize)> {
        let concurrency = POLLERS * BATCH;
        let spec = SourceSpec {
            mode,
            lease: LEASE,
            concurrency,
            // The emulator pushes all that it has, whatever a stream asks for.
            held: messages,
            ..SourceSpec::new(subscription, Provision::Validate)
        };
        let counted = Counted::new(self.pubsub.source(spec).await?);
        let (source, handler) = (counted.clone(), Arc::new(Native));
        let pumping = Pumping { source, handler, clock: clock(), concurrency, messages };
        let sample = pumping.run().await?;
        let requests = match mode {
            Mode::Pull => counted.requests(),
            Mode::Stream => counted.settlements(),
        };
        Ok((sample, requests))
    }
}

/// One side's part of a round.
#[derive(Clone, Copy)]
struct Turn {
    number: usize,
}

impl Turn {
    /// A B, B A: neither is always the one that finds the emulator warm.
    fn is_pump(self) -> bool {
        matches!(self.number % 4, 1 | 2)
    }
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

fn turns(rounds: usize) -> impl Iterator<Item = Turn> {
    (0..rounds * 2).map(|number| Turn { number })
}

/// What came of a pump's rounds.
#[derive(Default)]
struct Pumped {
    series: Series,
    requests: usize,
}

impl Pumped {
    fn add(&mut self, (sample, requests): (Sample, usize)) {
        self.series.add(sample);
        self.requests += requests;
    }

    fn lines(&self, who: &str, (than, baseline): (&str, &Series), messages: usize) -> Vec<Line> {
        let pair = (&self.series, baseline);
        vec![
            Line::beside(format!("pubsub, {who}: messages, beside {than}"), "/s", pair, RATE)
                .target(Target::RatioAtLeast(LEAST_RATE)),
            Line::beside(format!("pubsub, {who}: CPU per message, beside {than}"), "µs", pair, CPU),
            Line::counted(format!("pubsub, {who}: requests per message"), self.requests, messages),
        ]
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
