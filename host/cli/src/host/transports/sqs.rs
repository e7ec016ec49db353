//! Amazon SQS, and SNS to SQS.

use std::sync::Arc;

use anyhow::Result;
use pumphouse_config::{Config, Place, Provision, SqsPlace, Subscription};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::Sink;
use pumphouse_sqs::{
    Envelope, NativeRedrive, ProvisionError, SinkSpec, SourceSpec, Sqs, SqsSettings,
    StaticCredentials,
};

use super::{OpenSource, WireError};

impl From<ProvisionError> for WireError {
    fn from(error: ProvisionError) -> Self {
        Self { away: error.is_retryable(), text: error.to_string() }
    }
}

pub(super) async fn connect(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Sqs>> {
    let Some(section) = &config.sqs else { return Ok(None) };
    let credentials = match &section.credentials {
        None => None,
        Some(given) => Some(StaticCredentials {
            access_key_id: given.access_key_id.resolve()?,
            secret_access_key: given.secret_access_key.resolve()?,
            session_token: given.session_token.as_ref().map(|token| token.resolve()).transpose()?,
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
                max_receive_count: native.limit,
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
) -> Result<OpenSource, WireError> {
    let (sqs, spec) = (connected(sqs)?, spec(place, subscription));
    let source = sqs.source(spec.clone()).await?;
    if subscription.provision == Provision::Assume {
        return Ok(OpenSource::unasked(source));
    }
    let facts = sqs.facts(&spec).await?;
    let (native_limit, retention) = (facts.native_limit, facts.retention);
    Ok(OpenSource { native_limit, retention, ..OpenSource::unasked(source) })
}

pub(super) async fn sink(
    sqs: Option<&Sqs>,
    place: &SqsPlace,
    how: Provision,
) -> Result<Arc<dyn Sink>, WireError> {
    Ok(connected(sqs)?.sink(SinkSpec::new(&place.queue.spelled, provision(how))).await?)
}
