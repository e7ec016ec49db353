//! C-18: what a handler has no room for is not received.

#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod common;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, CAPABILITIES, Native, bench, until};
use pumphouse_contract::Outcome;
use pumphouse_contract::ports::{BoxFuture, Handler, Version};
use pumphouse_pump::{Dispatch, Pump};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A handler whose room a test decides: none without a bound.
struct Shy {
    native: Native,
    room: watch::Receiver<Option<usize>>,
}

impl Handler for Shy {
    fn begin(&self) -> Arc<dyn Version> {
        self.native.begin()
    }

    fn slots(&self) -> Option<usize> {
        None
    }

    fn welcome(&self) -> BoxFuture<'_, Option<NonZeroUsize>> {
        Box::pin(async move {
            let mut room = self.room.clone();
            let room = *room.wait_for(|room| *room != Some(0)).await.unwrap();
            room.and_then(NonZeroUsize::new)
        })
    }
}

fn shy(room: Option<usize>) -> (Bench, watch::Sender<Option<usize>>) {
    let native = Native::new(|_, _| async { Ok(Outcome::Ack) });
    let mut bench = bench(CAPABILITIES, Dispatch::Concurrent(32), native);
    let (sender, receiver) = watch::channel(room);
    bench.subscription.handler = Arc::new(Shy { native: bench.handler.clone(), room: receiver });
    for n in 0..40 {
        bench.source.publish(&format!("m{n:02}"), None);
    }
    (bench, sender)
}

/// Without room nothing is received but what shows that the broker answers; with little, little at a time, by one
/// receive after another; without a bound all at once.
#[tokio::test(start_paused = true)]
async fn c_18_a_pump_receives_what_its_handler_has_room_for() {
    let (bench, room) = shy(Some(0));
    let pump = Pump::start(bench.subscription.clone());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.handler.calls().len(), 1);
    assert_eq!(pump.status().condition.label(), "running");
    bench.source.receives.lock().unwrap().clear();
    room.send(Some(3)).unwrap();
    sleep(Duration::from_millis(28)).await;
    room.send(Some(0)).unwrap();
    sleep(Duration::from_secs(60)).await;
    let asked = bench.source.receives.lock().unwrap().clone();
    assert!((4..=8).contains(&asked.len()), "{asked:?}");
    assert!(asked.iter().all(|(_, ask)| ask.max <= 3), "{asked:?}");
    let mut pauses = asked.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(pauses.all(|pause| pause >= Duration::from_millis(5)), "{asked:?}");
    let before = bench.handler.calls().len();
    assert!(before <= 1 + 3 * asked.len() && bench.source.left() == 40 - before, "{before}");
    room.send(None).unwrap();
    until("all handled", || bench.source.left() == 0).await;
    let most = bench.source.receives.lock().unwrap().iter().map(|(_, ask)| ask.max).max();
    assert_eq!(most, Some(10));
    assert!(pump.stop(Duration::from_secs(30)).await.clean);
}

/// A pump that waits for room drains at once.
#[tokio::test(start_paused = true)]
async fn c_18_a_drain_does_not_wait_for_room() {
    let (bench, _room) = shy(Some(0));
    let pump = Pump::start(bench.subscription.clone());
    until("it waits for room", || bench.handler.calls().len() == 1).await;
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    assert!(pump.stop(Duration::from_secs(30)).await.clean);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(bench.source.left(), 39);
}
