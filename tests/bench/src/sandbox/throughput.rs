//! Many calls at once, as many as two workers can take: what each costs.

use std::sync::Arc;

use anyhow::Result;
use futures_util::future::try_join_all;
use tokio::runtime::Handle;

use super::latency::{bare_there, product_there};
use super::{Called, MOST_OVER_BARE, Runtimes};
use crate::measure::{CPU, RATE, Sample, Series, Stopwatch};
use crate::message;
use crate::options::Options;
use crate::report::{Line, Target};

const ROUNDS: usize = 30;
const CALLERS: usize = 64;
const CALLS: usize = 100;

pub(super) fn run(
    runtimes: &Runtimes,
    called: &Arc<Called>,
    options: &Options,
) -> Result<Vec<Line>> {
    let guests = runtimes.guests.handle().clone();
    let rounds = options.scaled(ROUNDS);
    let measured = runtimes.io.spawn(measure(called.clone(), guests, rounds));
    let (bare, product) = runtimes.io.block_on(measured)??;
    let pair = (&product, &bare);
    Ok(vec![
        Line::beside(called.name("saturated, CPU per message"), "µs", pair, CPU)
            .target(Target::RatioAtMost(MOST_OVER_BARE)),
        Line::beside(called.name("saturated, messages"), "/s", pair, RATE),
    ])
}

async fn measure(called: Arc<Called>, guests: Handle, rounds: usize) -> Result<(Series, Series)> {
    let (mut bare, mut product) = (Series::default(), Series::default());
    for _ in 0..rounds {
        bare.add(bare_round(&called, &guests).await?);
        product.add(product_round(&called).await?);
    }
    Ok((bare, product))
}

async fn bare_round(called: &Arc<Called>, guests: &Handle) -> Result<Sample> {
    let watch = Stopwatch::start();
    let callers = (0..CALLERS).map(|_| {
        let (called, guests) = (called.clone(), guests.clone());
        tokio::spawn(async move {
            let invocation = message::invocation();
            for _ in 0..CALLS {
                bare_there(&called, &guests, &invocation).await?;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(watch.stop(CALLERS * CALLS))
}

async fn product_round(called: &Arc<Called>) -> Result<Sample> {
    let watch = Stopwatch::start();
    let callers = (0..CALLERS).map(|_| {
        let called = called.clone();
        tokio::spawn(async move {
            let invocation = message::invocation();
            for _ in 0..CALLS {
                product_there(&called, &invocation).await?;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(watch.stop(CALLERS * CALLS))
}
