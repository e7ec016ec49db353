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

use self::plain::Client;
use self::server::Server;
use crate::cores::Cores;
use crate::counted::Counted;
use crate::io;
use crate::measure::Sample;
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::Line;
use crate::turns::{Side, turns};

/// Turns that pull differ by a half, as the emulator's garbage and the machine's other work fall: so there are many.
/// Short ones: a pull takes the emulator the longer, the more messages wait in it.
const PULLING_ROUNDS: usize = 100;
const PULLED: usize = 5_000;
/// Turns that stream hardly differ.
const STREAMING_ROUNDS: usize = 12;
/// The emulator pushes a hundred each twentieth of a second: more of them would show the same for longer.
const PUSHED: usize = 2_000;
/// Pulls at once, the same on both sides, and how the table calls it. One is quickest against the emulator, which takes
/// longer over a pull that finds messages out; the service itself wants several.
const PULLS: [(usize, &str); 2] =
    [(1, "pubsub, one pull at once"), (4, "pubsub, four pulls at once")];
/// What a stream may have in handlers at once.
const STREAMED: usize = 4 * BATCH;
/// The most messages of one pull: the emulator gives no more, whatever it is asked for.
const BATCH: usize = 100;
const LEASE: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let cores = Cores::part();
    io::run(measure(options, cores.as_ref()))
}

async fn measure(options: &Options, cores: Option<&Cores>) -> Result<Vec<Line>> {
    let bench = Bench::start().await?;
    cores.inspect(|cores| cores.move_servers());
    let (rounds, messages) = (options.scaled(PULLING_ROUNDS), options.scaled(PULLED));
    let mut lines = Vec::new();
    for (pollers, name) in PULLS {
        lines.extend(bench.pulling(pollers, name, rounds, messages).await?);
    }
    let (rounds, messages) = (options.scaled(STREAMING_ROUNDS), options.scaled(PUSHED));
    lines.extend(bench.streaming(rounds, messages).await?);
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

    /// A pump that pulls beside loops that do.
    async fn pulling(
        &self,
        pollers: usize,
        name: &str,
        rounds: usize,
        messages: usize,
    ) -> Result<Vec<Line>> {
        let (mut plain, mut pumped) = (Side::default(), Side::default());
        for turn in turns(rounds) {
            let at = self.server.filled(&format!("pull-{pollers}-{turn}"), LEASE, messages).await?;
            if turn.is_pump() {
                let (mode, concurrency) = (Mode::Pull, pollers * BATCH);
                let (sample, requests) =
                    self.pump(mode, concurrency, &at.subscription, messages).await?;
                pumped.add(turn, sample, requests, messages);
            } else {
                let sample =
                    plain::consume(&self.plain, &at.subscription, messages, pollers).await?;
                plain.add(turn, sample, 0, messages);
            }
            self.server.delete(at).await?;
        }
        Ok(pumped.lines(name, "plain", &plain))
    }

    /// A pump that is pushed to beside the subscriber of Google's library, which is too.
    async fn streaming(&self, rounds: usize, messages: usize) -> Result<Vec<Line>> {
        let (mut library, mut pumped) = (Side::default(), Side::default());
        for turn in turns(rounds) {
            let at = self.server.filled(&format!("stream-{turn}"), LEASE, messages).await?;
            if turn.is_pump() {
                let (sample, requests) =
                    self.pump(Mode::Stream, STREAMED, &at.subscription, messages).await?;
                pumped.add(turn, sample, requests, messages);
            } else {
                let sample = library::consume(&self.library, &at.subscription, messages).await?;
                library.add(turn, sample, 0, messages);
            }
            self.server.delete(at).await?;
        }
        Ok(pumped.lines("pubsub, stream", "library", &library))
    }

    /// What each message cost, and how many requests all of them took.
    async fn pump(
        &self,
        mode: Mode,
        concurrency: usize,
        subscription: &str,
        messages: usize,
    ) -> Result<(Sample, usize)> {
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

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
