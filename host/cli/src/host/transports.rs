//! The concrete transports, named here and nowhere else.

#[cfg(feature = "pubsub")]
mod pubsub;
#[cfg(feature = "rocketmq")]
mod rocketmq;
#[cfg(feature = "sqs")]
mod sqs;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use pumphouse_broker::Broker;
use pumphouse_config::{Build, Config, Place, Provision, Store, Subscription, TransportFacts};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::{Queues, Sink, Source};
use pumphouse_pump::Sinks;

/// The transports of this build, by their keys in the configuration.
pub(crate) const TRANSPORTS: &[&str] = &[
    "embedded",
    #[cfg(feature = "sqs")]
    "sqs",
    #[cfg(feature = "pubsub")]
    "pubsub",
    #[cfg(feature = "rocketmq")]
    "rocketmq",
];

/// What the transports of this build can do.
pub(crate) fn build() -> Build {
    Build::new(vec![
        TransportFacts::new("embedded", &pumphouse_broker::CAPABILITIES, false),
        #[cfg(feature = "sqs")]
        TransportFacts::new("sqs", &pumphouse_sqs::CAPABILITIES, true),
        #[cfg(feature = "pubsub")]
        pubsub::facts(),
        #[cfg(feature = "rocketmq")]
        rocketmq::facts(),
    ])
}

/// Where the embedded broker keeps its store.
pub(crate) fn broker_directory(config: &Config) -> PathBuf {
    config.host.state.join("broker")
}

/// Why a subscription's places could not be had.
#[derive(Debug, Clone)]
pub(crate) struct WireError {
    /// Whether trying again may help: the broker is away.
    pub(crate) away: bool,
    /// What is wrong, and what to do.
    pub(crate) text: String,
}

impl WireError {
    fn fatal(text: impl std::fmt::Display) -> Self {
        Self { away: false, text: text.to_string() }
    }

    #[cfg(not(all(feature = "sqs", feature = "pubsub", feature = "rocketmq")))]
    fn absent(transport: &str) -> Self {
        Self::fatal(format_args!("this build has no transport `{transport}`"))
    }
}

/// A source, with what its broker says of it.
pub(crate) struct OpenSource {
    pub(crate) source: Arc<dyn Source>,
    /// M, where the broker was asked and has one.
    pub(crate) native_limit: Option<u32>,
    /// After how many deliveries other clients of the source stop, where the broker was asked and says so.
    pub(crate) advisory_limit: Option<u32>,
    /// How long a message is kept, where the broker was asked.
    pub(crate) retention: Option<Duration>,
}

impl OpenSource {
    /// A source whose broker was not asked.
    fn unasked(source: Arc<dyn Source>) -> Self {
        Self { source, native_limit: None, advisory_limit: None, retention: None }
    }
}

/// A subscription's places, opened.
pub(crate) struct Wired {
    pub(crate) opened: OpenSource,
    pub(crate) sinks: Sinks,
}

/// The connections that the subscriptions share.
#[derive(Clone)]
pub(crate) struct Transports {
    broker: Option<Broker>,
    clouds: Clouds,
}

/// The clients of the clouds, each where its section is there or a place is on it.
#[derive(Clone)]
struct Clouds {
    #[cfg(feature = "sqs")]
    sqs: Option<pumphouse_sqs::Sqs>,
    #[cfg(feature = "pubsub")]
    pubsub: Option<pumphouse_pubsub::Pubsub>,
    #[cfg(feature = "rocketmq")]
    rocketmq: Option<Arc<rocketmq::Client>>,
}

impl Clouds {
    /// Makes the clients, which call nothing yet. `before` are those of the configuration that this one replaces.
    #[cfg_attr(
        not(feature = "rocketmq"),
        expect(unused_variables, reason = "only RocketMQ's client is kept over a reload")
    )]
    async fn connect(
        config: &Config,
        clock: &Arc<dyn Clock>,
        before: Option<&Self>,
    ) -> Result<Self> {
        Ok(Self {
            #[cfg(feature = "sqs")]
            sqs: sqs::connect(config, clock).await?,
            #[cfg(feature = "pubsub")]
            pubsub: pubsub::connect(config, clock).await?,
            #[cfg(feature = "rocketmq")]
            rocketmq: {
                let before = before.and_then(|before| before.rocketmq.as_ref());
                rocketmq::connect(config, clock, before).await?
            },
        })
    }
}

impl Clouds {
    async fn close(&self) {
        #[cfg(feature = "rocketmq")]
        if let Some(client) = &self.rocketmq {
            client.close().await;
        }
    }
}

impl Transports {
    /// Opens the embedded broker where a place is embedded, and makes the clients of the clouds.
    pub(crate) async fn open(config: &Config, clock: &Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            broker: embedded(config, clock).await?,
            clouds: Clouds::connect(config, clock, None).await?,
        })
    }

    /// With the clients as another configuration has them. The embedded broker stays, since nobody else may open
    /// its store; it is opened where it was not needed before.
    pub(crate) async fn reopen(&self, config: &Config, clock: &Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            broker: match &self.broker {
                Some(broker) => Some(broker.clone()),
                None => embedded(config, clock).await?,
            },
            clouds: Clouds::connect(config, clock, Some(&self.clouds)).await?,
        })
    }

    /// The embedded queues, for the admin side.
    pub(crate) fn queues(&self) -> Option<Arc<dyn Queues>> {
        self.broker.clone().map(|broker| Arc::new(broker) as Arc<dyn Queues>)
    }

    /// Lets go of the embedded broker's store, and ends the clients that have threads of their own. For when the
    /// pumps have stopped.
    pub(crate) async fn close(&self) {
        if let Some(broker) = &self.broker {
            broker.close().await;
        }
        self.clouds.close().await;
    }

    /// Provisions and opens a subscription's source and destinations.
    pub(crate) async fn wire(
        &self,
        config: &Config,
        subscription: &Subscription,
    ) -> Result<Wired, WireError> {
        let opened = self.source(config, subscription).await?;
        let sinks = Sinks {
            dead_letter: self
                .optional_sink(subscription.dead_letter.as_ref(), subscription)
                .await?,
            invalid_message: self
                .optional_sink(subscription.invalid_message.as_ref(), subscription)
                .await?,
        };
        Ok(Wired { opened, sinks })
    }

    #[cfg_attr(
        not(any(feature = "pubsub", feature = "rocketmq")),
        expect(unused_variables, reason = "only they are told of their lease when they are made")
    )]
    async fn source(
        &self,
        config: &Config,
        subscription: &Subscription,
    ) -> Result<OpenSource, WireError> {
        match &subscription.source {
            Place::Embedded { queue } => {
                let broker = self.embedded(queue, subscription.provision).await?;
                Ok(OpenSource::unasked(broker.source(queue).map_err(WireError::fatal)?))
            }
            #[cfg(feature = "sqs")]
            Place::Sqs(place) => sqs::source(self.clouds.sqs.as_ref(), place, subscription).await,
            #[cfg(not(feature = "sqs"))]
            Place::Sqs(_) => Err(WireError::absent("sqs")),
            #[cfg(feature = "pubsub")]
            Place::Pubsub(_) => {
                pubsub::source(self.clouds.pubsub.as_ref(), config, subscription).await
            }
            #[cfg(not(feature = "pubsub"))]
            Place::Pubsub(_) => Err(WireError::absent("pubsub")),
            #[cfg(feature = "rocketmq")]
            Place::Rocketmq(place) => {
                rocketmq::source(self.clouds.rocketmq.as_deref(), place, config, subscription).await
            }
            #[cfg(not(feature = "rocketmq"))]
            Place::Rocketmq(_) => Err(WireError::absent("rocketmq")),
        }
    }

    async fn optional_sink(
        &self,
        place: Option<&Place>,
        subscription: &Subscription,
    ) -> Result<Option<Arc<dyn Sink>>, WireError> {
        match place {
            Some(place) => self.sink(place, subscription.provision_at(place)).await.map(Some),
            None => Ok(None),
        }
    }

    async fn sink(&self, place: &Place, provision: Provision) -> Result<Arc<dyn Sink>, WireError> {
        match place {
            Place::Embedded { queue } => {
                let broker = self.embedded(queue, provision).await?;
                broker.sink(queue).map_err(WireError::fatal)
            }
            #[cfg(feature = "sqs")]
            Place::Sqs(place) => sqs::sink(self.clouds.sqs.as_ref(), place, provision).await,
            #[cfg(not(feature = "sqs"))]
            Place::Sqs(_) => Err(WireError::absent("sqs")),
            #[cfg(feature = "pubsub")]
            Place::Pubsub(place) => {
                pubsub::sink(self.clouds.pubsub.as_ref(), place, provision).await
            }
            #[cfg(not(feature = "pubsub"))]
            Place::Pubsub(_) => Err(WireError::absent("pubsub")),
            #[cfg(feature = "rocketmq")]
            Place::Rocketmq(place) => {
                rocketmq::sink(self.clouds.rocketmq.as_deref(), place, provision).await
            }
            #[cfg(not(feature = "rocketmq"))]
            Place::Rocketmq(_) => Err(WireError::absent("rocketmq")),
        }
    }

    /// The embedded broker, with that queue made or looked for.
    async fn embedded(&self, queue: &str, provision: Provision) -> Result<&Broker, WireError> {
        let broker = self
            .broker
            .as_ref()
            .ok_or_else(|| WireError::fatal("the embedded broker is not open"))?;
        match provision {
            Provision::Create => broker.create(queue).await.map_err(WireError::fatal)?,
            Provision::Validate if !broker.exists(queue) => {
                return Err(WireError::fatal(format!(
                    "embedded queue {queue} does not exist: make it with provision = \"create\""
                )));
            }
            Provision::Validate | Provision::Assume => {}
        }
        Ok(broker)
    }
}

async fn embedded(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Broker>> {
    let places = config.subscriptions.iter().flat_map(|one| {
        [Some(&one.source), one.dead_letter.as_ref(), one.invalid_message.as_ref()]
            .into_iter()
            .flatten()
    });
    if !places.into_iter().any(|place| matches!(place, Place::Embedded { .. })) {
        return Ok(None);
    }
    Ok(Some(match config.embedded.store {
        Store::Memory => Broker::memory(clock.clone()),
        Store::Durable => Broker::open(&broker_directory(config), clock.clone())
            .await
            .context("the embedded broker can't be opened")?,
    }))
}

/// A sink for one place, without a host around it, and what is closed after it. An embedded one can't be had: its
/// store is the host's alone.
pub(crate) async fn sink_alone(
    config: &Config,
    place: &Place,
) -> Result<(Arc<dyn Sink>, Transports)> {
    let clock: Arc<dyn Clock> = Arc::new(pumphouse_pump::SystemClock::new());
    let clouds = Clouds::connect(config, &clock, None).await?;
    let transports = Transports { broker: None, clouds };
    let sink = transports.sink(place, Provision::Assume).await;
    Ok((sink.map_err(|error| anyhow::anyhow!(error.text))?, transports))
}

#[cfg(test)]
#[cfg(all(feature = "sqs", feature = "pubsub", feature = "rocketmq"))]
mod tests;
