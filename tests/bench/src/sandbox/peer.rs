//! A plug-in host of the same purpose, beside which the product's call stands: a program of its own (`tests/peer`), since it
//! wants more of the engine than the product does. It measures itself, in turns with the product.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};

use super::latency::acknowledged;
use super::{Called, Runtimes};
use crate::measure::{CPU, Sample, Series, Stopwatch, WALL};
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

/// Where `cargo xtask bench` says that it built the program.
const PROGRAM: &str = "PUMPHOUSE_BENCH_PEER";

const ROUNDS: usize = 60;
const CALLS: usize = 100;
/// How much cheaper the product's fresh call is to be: its ratio to the peer's.
const MOST_OF_THE_PEERS: f64 = 1.0 / 8.0;

/// The program, running. It ends with its input.
struct Peer {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Result<Option<Self>> {
        let Some(program) = std::env::var_os(PROGRAM) else { return Ok(None) };
        let mut command = Command::new(&program);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} can't be started", program.display()))?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let input = input.context("the peer has no input")?;
        let output = BufReader::new(output.context("the peer has no output")?);
        Ok(Some(Self { _process: process, input, output }))
    }

    fn round(&mut self, kind: &str) -> Result<Sample> {
        writeln!(self.input, "{kind} {CALLS}")?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let (wall, cpu) = line.trim().split_once(' ').context("the peer ended")?;
        Ok(Sample { wall: micros(wall)?, cpu: micros(cpu)? })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of calls is far below 2^52")]
fn micros(nanoseconds: &str) -> Result<f64> {
    let all: f64 = nanoseconds.parse().map_err(|_| anyhow!("no number: {nanoseconds}"))?;
    Ok(all / 1e3 / CALLS as f64)
}

pub(super) fn run(
    runtimes: &Runtimes,
    called: &Arc<Called>,
    options: &Options,
) -> Result<Vec<Line>> {
    let Some(mut peer) = Peer::start()? else {
        eprintln!("no plug-in host beside the sandbox: `cargo xtask bench sandbox` builds it");
        return Ok(Vec::new());
    };
    let (mut fresh, mut reused, mut product) =
        (Series::default(), Series::default(), Series::default());
    let rounds = options.scaled(ROUNDS);
    for _ in 0..rounds {
        fresh.add(peer.round("fresh")?);
        reused.add(peer.round("reused")?);
        product.add(runtimes.io.block_on(runtimes.guests.spawn(ours(called.clone())))??);
    }
    let name = |what: &str| called.name(what);
    Ok(vec![
        Line::alone(name("plug-in host (extism), reused instance"), "µs", &reused, WALL),
        Line::beside(name("fresh, beside the plug-in host's"), "µs", (&product, &fresh), WALL)
            .target(Target::RatioAtMost(MOST_OF_THE_PEERS)),
        Line::beside(name("fresh, beside the plug-in host's, CPU"), "µs", (&product, &fresh), CPU),
    ])
}

async fn ours(called: Arc<Called>) -> Result<Sample> {
    let invocation = message::invocation();
    let watch = Stopwatch::start();
    for _ in 0..CALLS {
        acknowledged(&called.version.call_here(invocation.clone()).await.result)?;
    }
    Ok(watch.stop(CALLS))
}
