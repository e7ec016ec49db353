//! What one trial works with: channels of its own, and hosts that read them.

use std::fmt::{Debug, Write};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pumphouse_contract::ports::{Action, Ask, Ordering as Order, Settlement, Sink, Source};
use pumphouse_contract::{Delivery, Outgoing};
use serde_json::Value;
use tokio::time::sleep;

use crate::cell::{Cell, Configuration};
use crate::host::{Host, Setup};
use crate::rows::{Names, Place, QueueFacts, Rig, Wants};
use crate::world::World;

/// How long anything may take that is sure to happen.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(15);

/// The lease under which a case itself looks at messages.
const LOOKING: Duration = Duration::from_secs(60);

/// One trial.
#[derive(Clone)]
pub(crate) struct Bench(Arc<Inner>);

struct Inner {
    world: Arc<World>,
    cell: Cell,
    stem: String,
    rig: Rig,
    channels: AtomicU32,
    hosts: Mutex<Vec<Arc<Host>>>,
}

impl Bench {
    pub(crate) async fn new(world: Arc<World>, cell: Cell, number: usize) -> Result<Self> {
        let rig = Rig::new(&world, cell).await?;
        let stem = format!("t{number}");
        Ok(Self(Arc::new(Inner {
            world,
            cell,
            stem,
            rig,
            channels: AtomicU32::new(0),
            hosts: Mutex::default(),
        })))
    }

    pub(crate) fn world(&self) -> &Arc<World> {
        &self.0.world
    }

    pub(crate) fn cell(&self) -> Cell {
        self.0.cell
    }

    pub(crate) fn configuration(&self) -> Configuration {
        self.0.cell.configuration
    }

    pub(crate) fn rig(&self) -> &Rig {
        &self.0.rig
    }

    /// A channel with a source and both destinations.
    pub(crate) async fn channel(&self) -> Result<Channel> {
        self.channel_with(Wants::default()).await
    }

    /// A channel whose source can be read with a short lease, for cases that wait until one lapses.
    pub(crate) async fn brief_channel(&self) -> Result<Channel> {
        self.channel_with(Wants { brief: true, ..Wants::default() }).await
    }

    pub(crate) async fn channel_with(&self, wants: Wants) -> Result<Channel> {
        let number = self.0.channels.fetch_add(1, Ordering::SeqCst);
        let stem = format!("{}-{number}", self.0.stem);
        let names = Names::new(stem, self.configuration().is_fifo());
        self.rig().create(&names, wants).await.context("making the queues")?;
        Ok(Channel { bench: self.clone(), names })
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Host>>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep(&self, host: &Arc<Host>) -> usize {
        let mut hosts = self.hosts();
        hosts.push(host.clone());
        hosts.len()
    }

    /// Ends what is left, whatever came of the trial.
    pub(crate) async fn close(&self) {
        let hosts = self.hosts().clone();
        for host in hosts {
            host.abandon().await;
        }
        self.rig().close().await;
    }

    /// What the hosts saw, for the message of a trial that failed.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for host in self.hosts().iter() {
            // Writing to a string does not fail.
            let _ = write!(story, "\n{}", host.story());
        }
        story
    }
}

/// The queues of one subscription.
#[derive(Clone)]
pub(crate) struct Channel {
    pub(crate) bench: Bench,
    pub(crate) names: Names,
}

impl Channel {
    pub(crate) fn queue(&self, place: Place) -> String {
        self.names.of(place)
    }

    fn rig(&self) -> &Rig {
        self.bench.rig()
    }

    /// Starts a host with transport objects of its own.
    pub(crate) async fn host(&self, setup: Setup) -> Result<Arc<Host>> {
        Host::start(self, setup).await
    }

    /// Sends a command for the guest. The tag names the message, and is its key: messages of a case don't wait
    /// for each other, whatever order the row keeps.
    pub(crate) async fn send(&self, tag: &str, command: Value) -> Result<()> {
        self.send_keyed(tag, tag, command).await
    }

    pub(crate) async fn send_keyed(&self, key: &str, tag: &str, mut command: Value) -> Result<()> {
        name(&mut command, tag);
        let message = Outgoing {
            ordering_key: Some(key.to_owned()),
            body: command.to_string().into(),
            ..Outgoing::default()
        };
        self.send_message(message).await
    }

    /// As [`send`](Self::send), the message having no key.
    pub(crate) async fn send_without_key(&self, tag: &str, mut command: Value) -> Result<()> {
        name(&mut command, tag);
        let message = Outgoing { body: command.to_string().into(), ..Outgoing::default() };
        self.send_message(message).await
    }

    pub(crate) async fn send_message(&self, message: Outgoing) -> Result<()> {
        self.rig().send(&self.names, message).await.context("sending to the source")
    }

    /// Sends a message whose body is not what its sender says of it. Where nobody looks at that, it is any other.
    pub(crate) async fn send_undecodable(&self, key: &str) -> Result<()> {
        let message = Outgoing {
            ordering_key: Some(key.to_owned()),
            body: "no base64, and no zlib".into(),
            ..Outgoing::default()
        };
        self.rig().send_undecodable(&self.names, message).await.context("sending to the source")
    }

    pub(crate) async fn source(&self) -> Result<Arc<dyn Source>> {
        self.rig().source(&self.names).await.context("opening the source")
    }

    pub(crate) async fn reader(&self, place: Place) -> Result<Arc<dyn Source>> {
        self.rig().reader(&self.queue(place)).await.context("opening a destination to read")
    }

    pub(crate) async fn sink(&self, place: Place) -> Result<Arc<dyn Sink>> {
        self.rig().sink(&self.queue(place)).await.context("opening a destination")
    }

    /// A queue as the case itself sees it.
    pub(crate) async fn look(&self, place: Place) -> Result<Arc<dyn Source>> {
        self.rig().look(&self.queue(place)).await.context("looking at a queue")
    }

    async fn gauge(&self, place: Place) -> Result<Arc<dyn Sink>> {
        self.rig().gauge(&self.queue(place)).await.context("looking at a queue")
    }

    pub(crate) async fn facts(&self) -> Result<QueueFacts> {
        self.rig().facts(&self.names).await
    }

    /// How many messages there are in a queue.
    pub(crate) async fn depth(&self, place: Place) -> Result<u64> {
        let depth = self.gauge(place).await?.depth().await?;
        depth.messages.context("the broker gives no depth")
    }

    /// Waits until a queue holds so many messages.
    pub(crate) async fn holds(&self, place: Place, messages: u64) -> Result<()> {
        let sink = self.gauge(place).await?;
        let began = Instant::now();
        let mut pause = POLL * 4;
        loop {
            let depth = sink.depth().await?.messages.context("the broker gives no depth")?;
            if depth == messages {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                bail!("{place:?} holds {depth} messages, expected {messages}");
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(POLL * 16);
        }
    }

    /// Takes so many messages from a destination, and shows that there is no other.
    pub(crate) async fn copies(&self, place: Place, number: usize) -> Result<Vec<Delivery>> {
        let source = self.look(place).await?;
        let began = Instant::now();
        let mut copies = Vec::new();
        while copies.len() < number {
            ensure!(
                began.elapsed() < PATIENCE,
                "{place:?} got {} copies, expected {number}",
                copies.len()
            );
            copies.extend(take(&*source, Duration::from_secs(1)).await?);
        }
        copies.extend(take(&*source, Duration::ZERO).await?);
        same(&format!("copies at {place:?}"), copies.len(), number)?;
        Ok(copies)
    }

    /// The one copy that a destination gets.
    pub(crate) async fn copy(&self, place: Place) -> Result<Delivery> {
        self.copies(place, 1).await?.pop().context("no copy")
    }

    /// Receives and releases the one message of the source so often: what hosts do that die while handling.
    pub(crate) async fn deliver_in_vain(&self, place: Place, times: usize) -> Result<()> {
        let source = self.look(place).await?;
        let began = Instant::now();
        let mut done = 0;
        while done < times {
            ensure!(began.elapsed() < PATIENCE, "only {done} of {times} deliveries");
            for delivery in source.receive(ask(1, Duration::from_secs(1))).await? {
                done += 1;
                settle(&*source, &delivery, Action::Release(Duration::ZERO)).await?;
            }
        }
        Ok(())
    }
}

/// Names the message in its command.
fn name(command: &mut Value, tag: &str) {
    if let Some(command) = command.as_object_mut() {
        command.insert("tag".to_owned(), tag.into());
    }
}

pub(crate) fn ask(max: usize, wait: Duration) -> Ask {
    Ask { max, wait, lease: LOOKING }
}

/// Receives what there is and removes it.
async fn take(source: &dyn Source, wait: Duration) -> Result<Vec<Delivery>> {
    let capabilities = *source.capabilities();
    let max = if capabilities.ordering == Order::Key { 1 } else { capabilities.receive_batch };
    let received = source.receive(ask(max, wait)).await?;
    for delivery in &received {
        settle(source, delivery, Action::Ack).await?;
    }
    Ok(received)
}

/// Settles one delivery and expects it to be done.
pub(crate) async fn settle(source: &dyn Source, delivery: &Delivery, action: Action) -> Result<()> {
    let settlement = Settlement { receipt: delivery.receipt.clone(), action };
    for answer in source.settle(vec![settlement]).await {
        if let Err(unsettled) = answer {
            bail!("{action:?} was answered {:?}: {}", unsettled.failure, unsettled.text);
        }
    }
    Ok(())
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, so: impl FnMut() -> bool) -> Result<()> {
    within(PATIENCE, what, so).await
}

/// Waits until something is so, for so long at most.
pub(crate) async fn within(
    patience: Duration,
    what: &str,
    mut so: impl FnMut() -> bool,
) -> Result<()> {
    let began = Instant::now();
    while !so() {
        ensure!(began.elapsed() < patience, "never came true in {patience:?}: {what}");
        sleep(POLL).await;
    }
    Ok(())
}

/// What was seen must be what is expected.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Result<()> {
    ensure!(seen == expected, "{what}: expected {expected:?}, saw {seen:?}");
    Ok(())
}

/// Runs both and gives the first error.
pub(crate) async fn both<A, B>(
    one: impl Future<Output = Result<A>>,
    other: impl Future<Output = Result<B>>,
) -> Result<(A, B)> {
    futures_util::future::try_join(one, other).await
}
