//! The embedded broker, in memory and durable. Each trial has one of its own.

use std::sync::Arc;

use anyhow::Result;
use pumphouse_broker::Broker;
use pumphouse_contract::Outgoing;
use pumphouse_contract::ports::{Sink, Source};
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::{Names, Place, QueueFacts, Wants};
use crate::cell::Configuration;
use crate::world::World;

/// One broker, which a restart replaces where it is durable.
pub(crate) struct Embedded {
    world: Arc<World>,
    broker: Mutex<Broker>,
    directory: Option<TempDir>,
}

impl Embedded {
    pub(crate) async fn new(world: &Arc<World>, configuration: Configuration) -> Result<Self> {
        let durable = configuration == Configuration::Durable;
        let directory = if durable { Some(world.directory()?) } else { None };
        let broker = match &directory {
            Some(directory) => Broker::open(directory.path(), world.clock.clone()).await?,
            None => Broker::memory(world.clock.clone()),
        };
        Ok(Self { world: world.clone(), broker: Mutex::new(broker), directory })
    }

    async fn broker(&self) -> Broker {
        self.broker.lock().await.clone()
    }

    pub(crate) async fn create(&self, names: &Names, _: Wants) -> Result<()> {
        for place in [Place::Source, Place::DeadLetter, Place::Invalid] {
            self.create_queue(&names.of(place)).await?;
        }
        Ok(())
    }

    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        Ok(self.broker().await.create(queue).await?)
    }

    pub(crate) async fn exists(&self, queue: &str) -> Result<bool> {
        Ok(self.broker().await.exists(queue))
    }

    pub(crate) async fn source(&self, names: &Names) -> Result<Arc<dyn Source>> {
        self.look(&names.of(Place::Source)).await
    }

    pub(crate) async fn reader(&self, queue: &str) -> Result<Arc<dyn Source>> {
        self.look(queue).await
    }

    pub(crate) async fn look(&self, queue: &str) -> Result<Arc<dyn Source>> {
        Ok(self.broker().await.source(queue)?)
    }

    pub(crate) async fn gauge(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        self.sink(queue).await
    }

    pub(crate) async fn facts(&self, _: &Names) -> Result<QueueFacts> {
        Ok(QueueFacts::default())
    }

    pub(crate) async fn sink(&self, queue: &str) -> Result<Arc<dyn Sink>> {
        Ok(self.broker().await.sink(queue)?)
    }

    pub(crate) async fn send(&self, names: &Names, message: Outgoing) -> Result<()> {
        self.sink(&names.of(Place::Source)).await?.publish(message).await?;
        Ok(())
    }

    /// A broker in memory ends with its process, so there the host alone is new.
    pub(crate) async fn restart(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            let mut broker = self.broker.lock().await;
            broker.close().await;
            *broker = Broker::open(directory.path(), self.world.clock.clone()).await?;
        }
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.broker.lock().await.close().await;
    }
}
