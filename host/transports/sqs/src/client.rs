use std::sync::Arc;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::{Credentials, SharedHttpClient, StalledStreamProtectionConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use pumphouse_contract::Clock;
use pumphouse_contract::ports::{Sink, Source};

use crate::incoming::Reading;
use crate::provision;
use crate::sink::SqsSink;
use crate::source::SqsSource;
use crate::{
    ProvisionError, QueueFacts, SinkSpec, SourceSpec, SqsError, SqsSettings, StaticCredentials,
    Timeouts,
};

/// A connection that is not used is closed after this long, before what is between us and the broker forgets it.
const IDLE: Duration = Duration::from_secs(30);

/// The connection to SQS and SNS of one region or endpoint. A clone is the same connection.
///
/// Polls have connections of their own, so that many long polls never keep a settlement waiting.
#[derive(Debug, Clone)]
pub struct Sqs {
    pub(crate) polls: aws_sdk_sqs::Client,
    pub(crate) work: aws_sdk_sqs::Client,
    pub(crate) topics: aws_sdk_sns::Client,
    pub(crate) timeouts: Timeouts,
    pub(crate) region: Region,
    clock: SharedClock,
}

#[derive(Clone)]
struct SharedClock(Arc<dyn Clock>);

impl std::fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Sqs {
    /// Reads the settings of the environment where ours are not set. Calls neither SQS nor SNS, but asks the
    /// instance for its region where nothing else names one, which takes some seconds where there is none.
    ///
    /// # Errors
    /// No region is known, or the endpoint is no address.
    pub async fn connect(settings: SqsSettings) -> Result<Self, SqsError> {
        if let Some(wrong) = settings.endpoint.as_deref().filter(|it| !is_address(it)) {
            return Err(SqsError::Endpoint(wrong.to_owned()));
        }
        let plain = settings.endpoint.as_deref().is_some_and(|it| it.starts_with("http://"));
        let shared = load(&settings).await;
        let region = shared.region().cloned().ok_or(SqsError::NoRegion)?;
        Ok(Self {
            polls: queues(&shared, &settings, plain),
            work: queues(&shared, &settings, plain),
            topics: topics(&shared, &settings, plain),
            timeouts: settings.timeouts,
            region,
            clock: SharedClock(settings.clock),
        })
    }

    /// Provisions a queue as its specification says and gives it to read from.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where SQS or SNS is
    /// away.
    pub async fn source(&self, spec: SourceSpec) -> Result<Arc<dyn Source>, ProvisionError> {
        let url = provision::source(self, &spec).await?;
        Ok(Arc::new(SqsSource::new(self, &spec, url, Arc::clone(&self.clock.0))))
    }

    /// Provisions a queue as its specification says and gives it to publish to. Under `Assume` it need not be
    /// there: each publish looks for it, until it is found.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where SQS is away.
    pub async fn sink(&self, spec: SinkSpec) -> Result<Arc<dyn Sink>, ProvisionError> {
        let target = provision::sink(self, &spec).await?;
        Ok(Arc::new(SqsSink::new(self, spec.queue, target)))
    }

    /// What the queue itself says for the findings: its redrive policy and its retention.
    ///
    /// # Errors
    /// The queue can't be asked.
    pub async fn facts(&self, spec: &SourceSpec) -> Result<QueueFacts, ProvisionError> {
        provision::facts(self, &spec.queue).await
    }

    /// M: the most deliveries, the first included, before the queue's redrive policy moves a message
    /// (`maxReceiveCount`: SQS moves it instead of delivering it once more); none without a policy.
    ///
    /// # Errors
    /// The queue can't be asked.
    pub async fn native_limit(&self, spec: &SourceSpec) -> Result<Option<u32>, ProvisionError> {
        self.facts(spec).await.map(|facts| facts.native_limit)
    }
}

impl From<&SourceSpec> for Reading {
    fn from(spec: &SourceSpec) -> Self {
        Self { envelope: spec.envelope, rejected: spec.rejected }
    }
}

fn is_address(endpoint: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        endpoint.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.contains(' '))
    })
}

/// What is the same for every client. The pump retries, and every call has a bound of ours.
async fn load(settings: &SqsSettings) -> SdkConfig {
    let timeouts = TimeoutConfig::builder().connect_timeout(settings.timeouts.connect).build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http(false))
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(credentials) = &settings.credentials {
        loader = loader.credentials_provider(fixed(credentials));
    }
    loader.load().await
}

fn fixed(credentials: &StaticCredentials) -> Credentials {
    Credentials::new(
        &credentials.access_key_id,
        &credentials.secret_access_key,
        credentials.session_token.clone(),
        None,
        "configuration",
    )
}

fn queues(shared: &SdkConfig, settings: &SqsSettings, plain: bool) -> aws_sdk_sqs::Client {
    let mut builder = aws_sdk_sqs::config::Builder::from(shared).http_client(http(plain));
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    aws_sdk_sqs::Client::from_conf(builder.build())
}

fn topics(shared: &SdkConfig, settings: &SqsSettings, plain: bool) -> aws_sdk_sns::Client {
    let mut builder = aws_sdk_sns::config::Builder::from(shared).http_client(http(plain));
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    aws_sdk_sns::Client::from_conf(builder.build())
}

/// Connections of their own. Without TLS no certificates are needed, and a machine may have none.
fn http(plain: bool) -> SharedHttpClient {
    let mut builder =
        Builder::new().pool_idle_timeout(IDLE).tls_provider(Provider::Rustls(CryptoMode::Ring));
    let trust = TlsContext::builder().with_trust_store(TrustStore::empty()).build();
    if let Some(context) = trust.ok().filter(|_| plain) {
        builder = builder.tls_context(context);
    }
    builder.build_https()
}
