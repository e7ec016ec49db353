use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::credentials::Credentials;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicyExt};
use google_cloud_pubsub::client::BasePublisher;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::GetSubscriptionRequest;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::subscriber_client::SubscriberClient;
use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Clock, with_causes};
use tokio::sync::OnceCell;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::calls::{Fault, Kind, bounded};
use crate::provision::{self, Channelled};
use crate::pull::PullSource;
use crate::sink::PubsubSink;
use crate::stream::StreamSource;
use crate::{
    Mode, ProvisionError, PubsubError, PubsubSettings, SinkSpec, SourceSpec, SubscriptionFacts,
    Timeouts, credentials, name, project,
};

const GOOGLE: &str = "https://pubsub.googleapis.com";
const EMULATOR: &str = "PUBSUB_EMULATOR_HOST";

/// Pings tell a connection that is gone from one that is quiet.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WAIT: Duration = Duration::from_secs(10);

/// A pull of many messages of the largest size, which is 10 MB; the library's own limit is 4 MiB.
const LARGEST_ANSWER: usize = 64 << 20;

/// The connection to Pub/Sub. A clone is the same connection.
///
/// Pulls and streams have a connection of their own, so that they never keep a settlement waiting.
#[derive(Clone)]
pub struct Pubsub {
    polls: Channel,
    work: Channel,
    /// Made with the first publish, since it may ask the metadata server.
    publisher: Arc<OnceCell<BasePublisher>>,
    pub(crate) credentials: Credentials,
    /// Of names that have none.
    project: Option<String>,
    /// The address, with its scheme.
    pub(crate) endpoint: String,
    /// The address, where it is not Google's.
    pub(crate) resource_manager: Option<String>,
    pub(crate) timeouts: Timeouts,
    pub(crate) clock: Arc<dyn Clock>,
}

impl fmt::Debug for Pubsub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pubsub")
            .field("project", &self.project)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Pubsub {
    /// Reads the environment where our settings say nothing. Calls no Pub/Sub, but asks the machine's metadata
    /// server for the project where nothing else names one, which takes up to 2 seconds where there is none.
    ///
    /// # Errors
    /// There are no credentials, or the endpoint is no address.
    pub async fn connect(settings: PubsubSettings) -> Result<Self, PubsubError> {
        credentials::ensure_crypto();
        let endpoint = address(&settings);
        let plain = endpoint.starts_with("http://");
        let polls = channel(&endpoint, &settings.timeouts)?;
        let work = channel(&endpoint, &settings.timeouts)?;
        let credentials = match &settings.credentials {
            _ if plain => credentials::nobody(),
            Some(json) => credentials::of_json(json)?,
            None => credentials::of_the_environment()?,
        };
        let project = project::find(&settings, plain).await;
        let PubsubSettings { timeouts, clock, resource_manager, .. } = settings;
        Ok(Self {
            polls,
            work,
            publisher: Arc::default(),
            credentials,
            project,
            endpoint,
            resource_manager,
            timeouts,
            clock,
        })
    }

    /// Provisions a subscription as its specification says and gives it to read from.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where Pub/Sub is away.
    pub async fn source(&self, spec: SourceSpec) -> Result<Arc<dyn Source>, ProvisionError> {
        let pubsub = self.beside(&spec.subscription)?;
        let found = provision::source(&pubsub, &spec).await?;
        Ok(match spec.mode {
            Mode::Pull => Arc::new(PullSource::new(&pubsub, &spec, found)),
            Mode::Stream => Arc::new(StreamSource::new(&pubsub, &spec, found)),
        })
    }

    /// Provisions a topic as its specification says and gives it to publish to. Under `Assume` it need not be
    /// there.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where Pub/Sub is away.
    pub async fn sink(&self, spec: SinkSpec) -> Result<Arc<dyn Sink>, ProvisionError> {
        let pubsub = self.beside(&spec.topic)?;
        provision::sink(&pubsub, &spec).await?;
        Ok(Arc::new(PubsubSink::new(&pubsub, &spec)))
    }

    /// What the subscription itself says for the findings: its policy, its retention, its order.
    ///
    /// # Errors
    /// The subscription can't be asked.
    pub async fn facts(&self, spec: &SourceSpec) -> Result<SubscriptionFacts, ProvisionError> {
        let pubsub = self.beside(&spec.subscription)?;
        provision::facts(&pubsub, &pubsub.subscription(&spec.subscription)).await
    }

    /// Where no project is known, the ids beside a full name are of its project.
    fn beside(&self, spelled: &str) -> Result<Self, ProvisionError> {
        let known = self.project.as_deref();
        let Some(project) = known.or_else(|| name::project(spelled)) else {
            return Err(ProvisionError::Invalid {
                resource: spelled.to_owned(),
                problems: vec![PubsubError::NoProject.to_string()],
            });
        };
        Ok(Self { project: Some(project.to_owned()), ..self.clone() })
    }

    pub(crate) fn subscription(&self, spelled: &str) -> String {
        name::subscription(self.project.as_deref().unwrap_or_default(), spelled)
    }

    pub(crate) fn topic(&self, spelled: &str) -> String {
        name::topic(self.project.as_deref().unwrap_or_default(), spelled)
    }

    /// What settles.
    pub(crate) fn work(&self) -> SubscriberClient<Channel> {
        SubscriberClient::new(self.work.clone()).max_decoding_message_size(LARGEST_ANSWER)
    }

    /// What waits for messages.
    pub(crate) fn polls(&self) -> SubscriberClient<Channel> {
        SubscriberClient::new(self.polls.clone()).max_decoding_message_size(LARGEST_ANSWER)
    }

    /// What publishes, over a connection of its own. It gives up when we do, and never tries twice.
    pub(crate) async fn publisher(&self) -> Result<BasePublisher, Fault> {
        let make = || {
            BasePublisher::builder()
                .with_endpoint(&self.endpoint)
                .with_credentials(self.credentials.clone())
                .with_retry_policy(NeverRetry.with_time_limit(self.timeouts.publish))
                .build()
        };
        let made = self.publisher.get_or_try_init(make).await;
        made.cloned().map_err(|error| Fault {
            kind: Kind::Sender,
            text: with_causes(&error),
            status: None,
        })
    }

    /// The connection for other services on the same address.
    pub(crate) fn work_channel(&self) -> Channel {
        self.work.clone()
    }

    /// Whether the service is there, by a call that changes nothing, where silence may mean either. These credentials
    /// need not be allowed it: a refusal is an answer.
    pub(crate) async fn confirm(&self, subscription: &str) -> Result<(), Fault> {
        let message = GetSubscriptionRequest { subscription: subscription.to_owned() };
        let request = self.request(message, ("subscription", subscription)).await?;
        match bounded(self.timeouts.settle, self.polls().get_subscription(request)).await {
            Ok(_) => Ok(()),
            Err(fault) => match fault.kind {
                Kind::Denied | Kind::Sender => Ok(()),
                Kind::Unavailable | Kind::Throttled | Kind::Missing => Err(fault),
            },
        }
    }

    /// A call about a resource, which Google routes by: `("subscription", name)`.
    pub(crate) async fn request<T>(
        &self,
        message: T,
        (field, resource): (&str, &str),
    ) -> Result<tonic::Request<T>, Fault> {
        let mut request = tonic::Request::new(message);
        let route = format!("{field}={resource}");
        if let Ok(route) = MetadataValue::try_from(route.as_str()) {
            request.metadata_mut().insert("x-goog-request-params", route);
        }
        credentials::authorise(&self.credentials, request.metadata_mut()).await?;
        Ok(request)
    }
}

/// Our own endpoint, the emulator's, or Google's.
fn address(settings: &PubsubSettings) -> String {
    let emulator = || {
        let host = std::env::var(EMULATOR).ok().filter(|host| !host.is_empty())?;
        // Google's clients take a host and a port; some people write a scheme.
        Some(if host.contains("://") { host } else { format!("http://{host}") })
    };
    let given = settings.endpoint.clone().or_else(emulator).unwrap_or_else(|| GOOGLE.to_owned());
    given.trim_end_matches('/').to_owned()
}

pub(crate) fn channel(endpoint: &str, timeouts: &Timeouts) -> Result<Channel, PubsubError> {
    let wrong = || PubsubError::Endpoint(endpoint.to_owned());
    let secure = endpoint.starts_with("https://");
    if !secure && !endpoint.starts_with("http://") {
        return Err(wrong());
    }
    let mut made = Endpoint::from_shared(endpoint.to_owned())
        .map_err(|_| wrong())?
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WAIT)
        .keep_alive_while_idle(false);
    if secure {
        made = made.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(|_| wrong())?;
    }
    Ok(made.connect_lazy())
}

/// What provisioning found, for those who read.
impl Channelled {
    /// Where nothing was asked.
    pub(crate) fn assumed(spec: &SourceSpec) -> Self {
        Self { counts: spec.native.is_some(), ack_deadline: spec.lease, exactly_once: false }
    }
}
