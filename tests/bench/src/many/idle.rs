//! A thousand subscriptions of the embedded broker that have nothing to do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use pumphouse_broker::Broker;
use pumphouse_contract::Clock;
use pumphouse_pump::{Pump, SystemClock};
use tokio::runtime::Runtime;

use super::float;
use super::process::Census;
use crate::measure::Stopwatch;
use crate::native::Native;
use crate::options::Options;
use crate::pumping::Pumping;
use crate::report::{Line, Target};

const SUBSCRIPTIONS: usize = 1_000;
const CONCURRENCY: usize = 32;
/// The host's own.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(10);

/// Of a core, in hundredths, for all of them.
const MOST_CPU: f64 = 1.0;
const MOST_KIB: f64 = 50.0;

pub(super) fn run(runtime: &Runtime, options: &Options) -> Result<Vec<Line>> {
    let many = options.scaled(SUBSCRIPTIONS);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let broker = Broker::memory(clock.clone());
    let before = Census::now()?;
    let pumps = runtime.block_on(start(&broker, many, &clock))?;
    std::thread::sleep(Duration::from_secs(1));
    let each = Census::now()?.anonymous_over(&before) / float(many);
    let watch = Stopwatch::start();
    std::thread::sleep(IDLE);
    let percent = watch.stop(1).cpu / IDLE.as_secs_f64() / 1e4;
    runtime.block_on(stop(pumps))?;
    let name = |what: &str| format!("many, {many} idle subscriptions: {what}");
    Ok(vec![
        Line::figure(name("all of them"), "% of a core", percent).target(Target::AtMost(MOST_CPU)),
        Line::figure(name("anonymous memory of one"), "KiB", each).target(Target::AtMost(MOST_KIB)),
    ])
}

async fn start(broker: &Broker, many: usize, clock: &Arc<dyn Clock>) -> Result<Vec<Pump>> {
    let mut pumps = Vec::new();
    for n in 0..many {
        let queue = format!("idle-{n}");
        broker.create(&queue).await?;
        let pumping = Pumping {
            source: broker.source(&queue)?,
            handler: Arc::new(Native),
            clock: clock.clone(),
            concurrency: CONCURRENCY,
            messages: 0,
        };
        pumps.push(Pump::start(pumping.idle(RECEIVE_WAIT)));
    }
    Ok(pumps)
}

async fn stop(pumps: Vec<Pump>) -> Result<()> {
    let stopping = pumps.iter().map(|pump| pump.stop(GRACE));
    let stopped = futures_util::future::join_all(stopping).await;
    ensure!(stopped.iter().all(|one| one.clean), "a pump did not stop cleanly");
    Ok(())
}
