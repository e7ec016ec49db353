//! Apache RocketMQ.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use pumphouse_config::{
    Config, Provision, RocketmqPlace, RocketmqReader, Subscription, TopicKind, TransportFacts,
};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::Sink;
use pumphouse_rocketmq::{
    Access, Kind, ProvisionError, Rocketmq, RocketmqSettings, SinkSpec, SourceSpec, Tls,
    capabilities,
};

use super::{OpenSource, WireError};

impl From<ProvisionError> for WireError {
    fn from(error: ProvisionError) -> Self {
        Self { away: error.is_retryable(), text: error.to_string() }
    }
}

/// The connection, with the section that it was made for.
pub(super) struct Client {
    section: pumphouse_config::Rocketmq,
    rocketmq: Rocketmq,
}

impl Client {
    /// Ends its threads. Bounded by the transport.
    pub(super) async fn close(&self) {
        self.rocketmq.close().await;
    }
}

/// What a configuration may ask of it, which is the same for both kinds.
pub(super) fn facts() -> TransportFacts {
    TransportFacts::new("rocketmq", &capabilities(Kind::Normal), false)
}

/// The one from before where its section is the same: a client has threads and connections, and whoever reads on
/// over a reload uses them.
pub(super) async fn connect(
    config: &Config,
    clock: &Arc<dyn Clock>,
    before: Option<&Arc<Client>>,
) -> Result<Option<Arc<Client>>> {
    let Some(section) = &config.rocketmq else { return Ok(None) };
    if let Some(same) = before.filter(|before| before.section == *section) {
        return Ok(Some(Arc::clone(same)));
    }
    let rocketmq = Rocketmq::connect(settings(section, clock)?).await?;
    Ok(Some(Arc::new(Client { section: section.clone(), rocketmq })))
}

fn settings(
    section: &pumphouse_config::Rocketmq,
    clock: &Arc<dyn Clock>,
) -> Result<RocketmqSettings> {
    let access = match &section.access {
        None => None,
        Some(access) => {
            Some(Access { key: access.key.resolve()?, secret: access.secret.resolve()? })
        }
    };
    Ok(RocketmqSettings {
        namespace: section.namespace.clone(),
        access,
        tls: section.tls.as_ref().map(tls).transpose()?,
        ..RocketmqSettings::new(section.name_servers.clone(), clock.clone())
    })
}

fn tls(tls: &pumphouse_config::Tls) -> Result<Tls> {
    let path = |path: &Option<std::path::PathBuf>| path.as_deref().map(text).transpose();
    Ok(Tls { trust: path(&tls.trust)?, certificate: path(&tls.certificate)?, key: path(&tls.key)? })
}

/// The client takes paths as text.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the path {} is not UTF-8", path.display()))
}

fn connected(client: Option<&Client>) -> Result<&Rocketmq, WireError> {
    let client = client.ok_or_else(|| WireError::fatal("rocketmq is not connected"))?;
    Ok(&client.rocketmq)
}

fn provision(provision: Provision) -> pumphouse_rocketmq::Provision {
    match provision {
        Provision::Create => pumphouse_rocketmq::Provision::Create,
        Provision::Validate => pumphouse_rocketmq::Provision::Validate,
        Provision::Assume => pumphouse_rocketmq::Provision::Assume,
    }
}

fn kind(kind: TopicKind) -> Kind {
    match kind {
        TopicKind::Normal => Kind::Normal,
        TopicKind::Fifo => Kind::Fifo,
    }
}

fn spec(
    place: &RocketmqPlace,
    reader: &RocketmqReader,
    config: &Config,
    subscription: &Subscription,
) -> SourceSpec {
    let how = provision(subscription.provision);
    let spec = SourceSpec::new(&place.topic, &reader.group, how);
    let linger = capabilities(kind(place.kind)).settle_linger;
    let lease = config.lease_of(subscription, linger).map(|lease| lease.length());
    SourceSpec {
        kind: kind(place.kind),
        tags: reader.tags.clone(),
        queues: place.queues,
        lease: lease.unwrap_or(spec.lease),
        rejected: subscription.reads_copies,
        ..spec
    }
}

pub(super) async fn source(
    client: Option<&Client>,
    place: &RocketmqPlace,
    config: &Config,
    subscription: &Subscription,
) -> Result<OpenSource, WireError> {
    let Some(reader) = &place.reader else {
        return Err(WireError::fatal("a source on rocketmq names a consumer group"));
    };
    let (rocketmq, spec) = (connected(client)?, spec(place, reader, config, subscription));
    let source = rocketmq.source(spec.clone()).await?;
    if subscription.provision == Provision::Assume {
        return Ok(OpenSource::unasked(source));
    }
    let facts = rocketmq.facts(&spec).await?;
    Ok(OpenSource { advisory_limit: facts.retry_limit, ..OpenSource::unasked(source) })
}

/// A destination; of a source its topic, for what is published to it from outside.
pub(super) async fn sink(
    client: Option<&Client>,
    place: &RocketmqPlace,
    how: Provision,
) -> Result<Arc<dyn Sink>, WireError> {
    let spec = SinkSpec {
        kind: kind(place.kind),
        queues: place.queues,
        ..SinkSpec::new(&place.topic, provision(how))
    };
    Ok(connected(client)?.sink(spec).await?)
}
