//! How full the rejection destinations are, asked now and then (S-7).

use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Destination;
use pumphouse_contract::ports::Sink;
use pumphouse_pump::Sinks;
use pumphouse_telemetry::Metrics;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(15);
/// What one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at a subscription's destinations until it is stopped. A destination that can't be asked is not shown as
/// empty: its last depth stands, and the failure of publishing to it has a metric of its own.
pub(crate) async fn watch(
    subscription: String,
    sinks: Sinks,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for (destination, sink) in destinations(&sinks) {
            if let Ok(Ok(depth)) = timeout(PATIENCE, sink.depth()).await {
                metrics.depth(&subscription, destination, depth);
            }
        }
    }
}

fn destinations(sinks: &Sinks) -> impl Iterator<Item = (Destination, &Arc<dyn Sink>)> {
    let dead_letter = sinks.dead_letter.iter().map(|sink| (Destination::DeadLetter, sink));
    dead_letter.chain(sinks.invalid_message.iter().map(|sink| (Destination::InvalidMessage, sink)))
}
