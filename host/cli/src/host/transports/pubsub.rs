//! Google Pub/Sub.

use std::sync::Arc;

use anyhow::Result;
use pumphouse_config::{
    Config, Native, Provision, PubsubMode, PubsubPlace, PubsubSource, Subscription, TransportFacts,
};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::Sink;
use pumphouse_pubsub::{
    Mode, NativeDeadLetter, ProvisionError, Pubsub, PubsubSettings, RetryPolicy, SinkSpec,
    SourceSpec, capabilities,
};

use super::{OpenSource, WireError};

impl From<ProvisionError> for WireError {
    fn from(error: ProvisionError) -> Self {
        Self { away: error.is_retryable(), text: error.to_string() }
    }
}

/// What a configuration may ask of it, which is the same in both modes, ordered or not.
pub(super) fn facts() -> TransportFacts {
    TransportFacts::new("pubsub", &capabilities(Mode::Stream, false), true)
}

pub(super) async fn connect(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Pubsub>> {
    let Some(section) = &config.pubsub else { return Ok(None) };
    let credentials = section.credentials.as_ref().map(|secret| secret.resolve()).transpose()?;
    let settings = PubsubSettings {
        project: section.project.clone(),
        endpoint: section.endpoint.clone(),
        credentials,
        ..PubsubSettings::new(clock.clone())
    };
    Ok(Some(Pubsub::connect(settings).await?))
}

fn connected(pubsub: Option<&Pubsub>) -> Result<&Pubsub, WireError> {
    pubsub.ok_or_else(|| WireError::fatal("pubsub is not connected"))
}

fn provision(provision: Provision) -> pumphouse_pubsub::Provision {
    match provision {
        Provision::Create => pumphouse_pubsub::Provision::Create,
        Provision::Validate => pumphouse_pubsub::Provision::Validate,
        Provision::Assume => pumphouse_pubsub::Provision::Assume,
    }
}

fn mode(mode: PubsubMode) -> Mode {
    match mode {
        PubsubMode::Stream => Mode::Stream,
        PubsubMode::Pull => Mode::Pull,
    }
}

fn native(native: &Native) -> Option<NativeDeadLetter> {
    Some(NativeDeadLetter {
        max_delivery_attempts: native.limit,
        dead_letter: native.dead_letter.as_ref()?.spelled().to_owned(),
        publisher_member: native.publisher_member.clone(),
        subscriber_member: native.subscriber_member.clone(),
    })
}

fn spec(source: &PubsubSource, config: &Config, subscription: &Subscription) -> SourceSpec {
    let how = provision(subscription.provision);
    let spec = SourceSpec::new(&source.subscription.spelled, how);
    let mode = mode(source.mode);
    let linger = capabilities(mode, source.ordered).settle_linger;
    let lease = config.lease_of(subscription, linger).map(|lease| lease.length());
    SourceSpec {
        topic: source.topic.as_ref().map(|topic| topic.spelled.clone()),
        mode,
        ordered: source.ordered,
        lease: lease.unwrap_or(spec.lease),
        native: subscription.native.as_ref().and_then(native),
        retry: source.retry.map(|retry| RetryPolicy { min: retry.min, max: retry.max }),
        rejected: subscription.reads_copies,
        concurrency: subscription.concurrency as usize,
        held: source.held as usize,
        ..spec
    }
}

pub(super) async fn source(
    pubsub: Option<&Pubsub>,
    config: &Config,
    subscription: &Subscription,
) -> Result<OpenSource, WireError> {
    let Some(source) = subscription.source.pubsub_source() else {
        return Err(WireError::fatal("a source on pubsub names a subscription"));
    };
    let (pubsub, spec) = (connected(pubsub)?, spec(source, config, subscription));
    let source = pubsub.source(spec.clone()).await?;
    if subscription.provision == Provision::Assume {
        return Ok(OpenSource::unasked(source));
    }
    let facts = pubsub.facts(&spec).await?;
    let (native_limit, retention) = (facts.native_limit, facts.retention);
    Ok(OpenSource { native_limit, retention, ..OpenSource::unasked(source) })
}

/// A destination; of a source its topic, for what is published to it from outside.
pub(super) async fn sink(
    pubsub: Option<&Pubsub>,
    place: &PubsubPlace,
    how: Provision,
) -> Result<Arc<dyn Sink>, WireError> {
    let spec = match place {
        PubsubPlace::Target(target) => SinkSpec {
            subscription: target.subscription.as_ref().map(|one| one.spelled.clone()),
            ..SinkSpec::new(&target.topic.spelled, provision(how))
        },
        PubsubPlace::Source(PubsubSource { topic: Some(topic), .. }) => {
            SinkSpec::new(&topic.spelled, provision(how))
        }
        PubsubPlace::Source(source) => {
            return Err(WireError::fatal(format_args!(
                "the topic of subscription {} is not known: say it as source.pubsub.topic",
                source.subscription.spelled
            )));
        }
    };
    Ok(connected(pubsub)?.sink(spec).await?)
}
