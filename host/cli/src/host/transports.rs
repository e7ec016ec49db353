//! The concrete transports, named here and nowhere else.

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
#[cfg(feature = "sqs")]
pub(crate) const TRANSPORTS: &[&str] = &["embedded", "sqs"];
/// The transports of this build, by their keys in the configuration.
#[cfg(not(feature = "sqs"))]
pub(crate) const TRANSPORTS: &[&str] = &["embedded"];

/// What the transports of this build can do.
pub(crate) fn build() -> Build {
    Build::new(vec![
        TransportFacts::new("embedded", &pumphouse_broker::CAPABILITIES, false),
        #[cfg(feature = "sqs")]
        TransportFacts::new("sqs", &pumphouse_sqs::CAPABILITIES, true),
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
}

/// A subscription's places, opened.
pub(crate) struct Wired {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) sinks: Sinks,
    /// M, as the broker says it.
    pub(crate) native_limit: Option<u32>,
    /// How long the source keeps a message, as the broker says it.
    pub(crate) retention: Option<Duration>,
}

/// The connections that the subscriptions share.
#[derive(Clone)]
pub(crate) struct Transports {
    broker: Option<Broker>,
    #[cfg(feature = "sqs")]
    sqs: Option<pumphouse_sqs::Sqs>,
}

impl Transports {
    /// Opens the embedded broker where a place is embedded, and makes the clients of the clouds, which call
    /// nothing yet.
    pub(crate) async fn open(config: &Config, clock: &Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            broker: embedded(config, clock).await?,
            #[cfg(feature = "sqs")]
            sqs: cloud::sqs(config, clock).await?,
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
            #[cfg(feature = "sqs")]
            sqs: cloud::sqs(config, clock).await?,
        })
    }

    /// The embedded queues, for the admin side.
    pub(crate) fn queues(&self) -> Option<Arc<dyn Queues>> {
        self.broker.clone().map(|broker| Arc::new(broker) as Arc<dyn Queues>)
    }

    /// Lets go of the embedded broker's store.
    pub(crate) async fn close(&self) {
        if let Some(broker) = &self.broker {
            broker.close().await;
        }
    }

    /// Provisions and opens a subscription's source and destinations.
    pub(crate) async fn wire(&self, subscription: &Subscription) -> Result<Wired, WireError> {
        let (source, native_limit, retention) = self.source(subscription).await?;
        let sinks = Sinks {
            dead_letter: self
                .optional_sink(subscription.dead_letter.as_ref(), subscription)
                .await?,
            invalid_message: self
                .optional_sink(subscription.invalid_message.as_ref(), subscription)
                .await?,
        };
        Ok(Wired { source, sinks, native_limit, retention })
    }

    async fn source(
        &self,
        subscription: &Subscription,
    ) -> Result<(Arc<dyn Source>, Option<u32>, Option<Duration>), WireError> {
        match &subscription.source {
            Place::Embedded { queue } => {
                let broker = self.embedded(queue, subscription.provision).await?;
                Ok((broker.source(queue).map_err(WireError::fatal)?, None, None))
            }
            #[cfg(feature = "sqs")]
            Place::Sqs(place) => cloud::source(self.sqs.as_ref(), place, subscription).await,
            #[cfg(not(feature = "sqs"))]
            Place::Sqs(_) => Err(WireError::fatal("this build has no sqs transport")),
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
            Place::Sqs(place) => cloud::sink(self.sqs.as_ref(), place, provision).await,
            #[cfg(not(feature = "sqs"))]
            Place::Sqs(_) => Err(WireError::fatal("this build has no sqs transport")),
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

/// A sink for one place, without a host around it. An embedded one can't be had: its store is the host's alone.
#[cfg(feature = "sqs")]
pub(crate) async fn sink_alone(config: &Config, place: &Place) -> Result<Arc<dyn Sink>> {
    let clock: Arc<dyn Clock> = Arc::new(pumphouse_pump::SystemClock::new());
    let transports = Transports { broker: None, sqs: cloud::sqs(config, &clock).await? };
    transports.sink(place, Provision::Assume).await.map_err(|error| anyhow::anyhow!(error.text))
}

/// A sink for one place, without a host around it. This build has no broker but the host's own.
#[cfg(not(feature = "sqs"))]
pub(crate) async fn sink_alone(_: &Config, place: &Place) -> Result<Arc<dyn Sink>> {
    anyhow::bail!("{place} can't be reached: this build has no cloud transports")
}

#[cfg(feature = "sqs")]
mod cloud {
    use super::*;
    use pumphouse_config::SqsPlace;
    use pumphouse_sqs::{
        Envelope, NativeRedrive, ProvisionError, SinkSpec, SourceSpec, Sqs, SqsSettings,
        StaticCredentials,
    };

    impl From<ProvisionError> for WireError {
        fn from(error: ProvisionError) -> Self {
            Self { away: error.is_retryable(), text: error.to_string() }
        }
    }

    pub(super) async fn sqs(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Sqs>> {
        let Some(section) = &config.sqs else { return Ok(None) };
        let credentials = match &section.credentials {
            None => None,
            Some(given) => Some(StaticCredentials {
                access_key_id: given.access_key_id.resolve()?,
                secret_access_key: given.secret_access_key.resolve()?,
                session_token: given
                    .session_token
                    .as_ref()
                    .map(|token| token.resolve())
                    .transpose()?,
            }),
        };
        let settings = SqsSettings {
            region: section.region.clone(),
            endpoint: section.endpoint.clone(),
            credentials,
            ..SqsSettings::new(clock.clone())
        };
        Ok(Some(Sqs::connect(settings).await?))
    }

    fn connected(sqs: Option<&Sqs>) -> Result<&Sqs, WireError> {
        sqs.ok_or_else(|| WireError::fatal("sqs is not connected"))
    }

    fn provision(provision: Provision) -> pumphouse_sqs::Provision {
        match provision {
            Provision::Create => pumphouse_sqs::Provision::Create,
            Provision::Validate => pumphouse_sqs::Provision::Validate,
            Provision::Assume => pumphouse_sqs::Provision::Assume,
        }
    }

    fn spec(place: &SqsPlace, subscription: &Subscription) -> SourceSpec {
        SourceSpec {
            topic: place.topic.as_ref().map(|topic| topic.spelled.clone()),
            envelope: match place.envelope {
                pumphouse_config::Envelope::Raw => Envelope::Raw,
                pumphouse_config::Envelope::Enveloped => Envelope::Enveloped,
            },
            native: subscription.native.as_ref().and_then(|native| {
                let Some(Place::Sqs(to)) = &native.dead_letter else { return None };
                Some(NativeRedrive {
                    max_receive_count: native.max_receive_count,
                    dead_letter: to.queue.spelled.clone(),
                })
            }),
            rejected: subscription.reads_copies,
            ..SourceSpec::new(&place.queue.spelled, provision(subscription.provision))
        }
    }

    pub(super) async fn source(
        sqs: Option<&Sqs>,
        place: &SqsPlace,
        subscription: &Subscription,
    ) -> Result<(Arc<dyn Source>, Option<u32>, Option<Duration>), WireError> {
        let (sqs, spec) = (connected(sqs)?, spec(place, subscription));
        let source = sqs.source(spec.clone()).await?;
        if subscription.provision == Provision::Assume {
            return Ok((source, None, None));
        }
        let facts = sqs.facts(&spec).await?;
        Ok((source, facts.native_limit, facts.retention))
    }

    pub(super) async fn sink(
        sqs: Option<&Sqs>,
        place: &SqsPlace,
        how: Provision,
    ) -> Result<Arc<dyn Sink>, WireError> {
        Ok(connected(sqs)?.sink(SinkSpec::new(&place.queue.spelled, provision(how))).await?)
    }
}
