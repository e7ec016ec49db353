//! What each limit costs: the bare loop with one of them, beside the bare loop with none.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::Runtimes;
use super::bare::{Bare, Switches};
use crate::guests::Guest;
use crate::measure::{Sample, Series, Stopwatch, WALL};
use crate::message;
use crate::options::Options;
use crate::report::Line;

const ROUNDS: usize = 100;
const CALLS: usize = 200;

const NONE: Switches =
    Switches { epochs: false, memory: false, result: false, deadline: false, meter: false };

const EACH: [(&str, Switches); 6] = [
    ("interruption (epochs)", Switches { epochs: true, ..NONE }),
    ("memory and tables (limiter)", Switches { memory: true, ..NONE }),
    ("size of answers (fuel of host calls)", Switches { result: true, ..NONE }),
    ("deadline (a timer around the call)", Switches { deadline: true, ..NONE }),
    ("metering (clocks around each turn)", Switches { meter: true, ..NONE }),
    (
        "all of them",
        Switches { epochs: true, memory: true, result: true, deadline: true, meter: true },
    ),
];

pub(super) fn run(runtimes: &Runtimes, options: &Options) -> Result<Vec<Line>> {
    let component = Guest::Wasip2.component()?;
    let none = Bare::with(&component, NONE)?;
    let mut lines = Vec::new();
    for (what, switches) in EACH {
        lines.push(one(runtimes, &none, &component, what, switches, options)?);
    }
    Ok(lines)
}

fn one(
    runtimes: &Runtimes,
    none: &Arc<Bare>,
    component: &Path,
    what: &str,
    switches: Switches,
    options: &Options,
) -> Result<Line> {
    let with = Bare::with(component, switches)?;
    let (mut limited, mut free) = (Series::default(), Series::default());
    for _ in 0..options.scaled(ROUNDS) {
        limited.add(runtimes.io.block_on(runtimes.guests.spawn(round(with.clone())))??);
        free.add(runtimes.io.block_on(runtimes.guests.spawn(round(none.clone())))??);
    }
    let name = format!("sandbox, a limit alone: {what}");
    Ok(Line::beside(name, "µs", (&limited, &free), WALL))
}

async fn round(bare: Arc<Bare>) -> Result<Sample> {
    let invocation = message::invocation();
    let watch = Stopwatch::start();
    for _ in 0..CALLS {
        bare.call(invocation.clone()).await?;
    }
    Ok(watch.stop(CALLS))
}
