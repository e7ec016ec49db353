//! The pump on SQS beside a plain consumer on the SDK, on the same server.

mod plain;
mod server;

use std::sync::Arc;

use anyhow::Result;
use pumphouse_contract::Clock;
use pumphouse_pump::SystemClock;
use pumphouse_sqs::{Provision, SourceSpec, Sqs};

use self::server::Server;
use crate::cores::Cores;
use crate::counted::Counted;
use crate::io;
use crate::measure::{CPU, RATE, Sample, Series};
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::{Line, Target};

const ROUNDS: usize = 20;
const MESSAGES: usize = 10_000;
/// Receives at once, the same on both sides.
const POLLERS: usize = 8;
/// The most messages of one receive.
const BATCH: usize = 10;

pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let cores = Cores::part();
    io::run(measure(options, cores.as_ref()))
}

async fn measure(options: &Options, cores: Option<&Cores>) -> Result<Vec<Line>> {
    let server = Server::start().await?;
    cores.inspect(|cores| cores.move_servers());
    let sqs = Sqs::connect(server.settings(clock())).await?;
    let client = server.client();
    let messages = options.scaled(MESSAGES);
    let [mut plain, mut pumped] = [(); 2].map(|()| Series::default());
    let (rounds, mut requests) = (options.scaled(ROUNDS), 0);
    for round in 0..rounds {
        let queue = server.filled(&format!("plain-{round}"), messages).await?;
        plain.add(plain::consume(&client, &queue, messages).await?);
        let queue = server.filled(&format!("pumped-{round}"), messages).await?;
        let (sample, asked) = pump(&sqs, &queue, messages).await?;
        pumped.add(sample);
        requests += asked;
    }
    let pair = (&pumped, &plain);
    Ok(vec![
        Line::beside("sqs, native: messages, beside plain", "/s", pair, RATE)
            .target(Target::RatioAtLeast(0.95)),
        Line::beside("sqs, native: CPU per message, beside plain", "µs", pair, CPU)
            .target(Target::RatioAtMost(1.3)),
        Line::counted("sqs, native: requests per message", requests, rounds * messages),
    ])
}

/// What each message cost, and how many requests all of them took.
async fn pump(sqs: &Sqs, queue: &str, messages: usize) -> Result<(Sample, usize)> {
    let source = sqs.source(SourceSpec::new(queue, Provision::Validate)).await?;
    let counted = Counted::new(source);
    let (source, handler) = (counted.clone(), Arc::new(Native));
    let concurrency = POLLERS * BATCH;
    let pumping = Pumping { source, handler, clock: clock(), concurrency, messages };
    Ok((pumping.run().await?, counted.requests()))
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
