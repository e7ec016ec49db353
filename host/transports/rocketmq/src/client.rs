use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::{Sink, Source};
use pumphouse_contract::{Clock, with_causes};
use rocketmq_client_rust::{
    AclClientRPCHook, ClientConfig, ClientInstanceHandle, ClientResult, ClientRpcHook,
    ClientRuntime, ClientRuntimeConfig, SessionCredentials, TelemetryHandle,
};
use rocketmq_runtime::{RuntimeConfig, RuntimeOwner, ShutdownDeadline};

use crate::calls::Fault;
use crate::provision;
use crate::sink::TopicSink;
use crate::source::PopSource;
use crate::{
    Access, GroupFacts, ProvisionError, RocketmqError, RocketmqSettings, SinkSpec, SourceSpec,
    Timeouts, Tls, names,
};

/// The client's own threads. They only move bytes: what is decoded and handled is on the host's.
const THREADS: usize = 2;

/// After it, what is left of the client is dropped.
const CLOSE: Duration = Duration::from_secs(3);

/// The most handles that are kept for later requests. There are more only while more requests than that are made at once.
const IDLE: usize = 256;

/// One client for the process; its handles share the connections to each server.
const DOMAIN: u64 = 1;

/// The connection to RocketMQ. A clone is the same connection.
///
/// The client lets one request at a time through a handle, also while it polls. So each request in progress has a
/// handle of its own, and none waits behind a poll.
#[derive(Clone)]
pub struct Rocketmq {
    client: Arc<Client>,
    namespace: Option<Arc<str>>,
    pub(crate) timeouts: Timeouts,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The client's runtime, and the handles that nobody uses at the moment.
struct Client {
    owner: Mutex<Option<RuntimeOwner>>,
    runtime: Arc<ClientRuntime>,
    config: ClientConfig,
    hook: Option<Arc<ClientRpcHook>>,
    idle: Mutex<Vec<Arc<ClientInstanceHandle>>>,
}

impl fmt::Debug for Rocketmq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rocketmq")
            .field("name_servers", &self.client.config.namesrv_addr)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Rocketmq {
    /// Starts the client, with threads of its own. Calls neither name server nor broker.
    ///
    /// # Errors
    /// No name server is named, or the client can't be started.
    pub async fn connect(settings: RocketmqSettings) -> Result<Self, RocketmqError> {
        if settings.name_servers.is_empty() {
            return Err(RocketmqError::NoNameServer);
        }
        ensure_crypto();
        let client = Client::new(&settings)?;
        let first = client.handle().map_err(|fault| RocketmqError::Client(fault.text))?;
        first.start().await.map_err(|error| RocketmqError::Client(with_causes(&error)))?;
        client.give_back(first);
        let RocketmqSettings { namespace, timeouts, clock, .. } = settings;
        Ok(Self { client: Arc::new(client), namespace: namespace.map(Into::into), timeouts, clock })
    }

    /// Provisions a topic and a group as their specification says and gives them to read from.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where RocketMQ is away.
    pub async fn source(&self, spec: SourceSpec) -> Result<Arc<dyn Source>, ProvisionError> {
        provision::source(self, &spec).await?;
        Ok(Arc::new(PopSource::new(self, &spec)))
    }

    /// Provisions a topic as its specification says and gives it to publish to. Under `Assume` it need not be
    /// there.
    ///
    /// # Errors
    /// What is wrong or missing, each difference named; [`ProvisionError::is_retryable`] where RocketMQ is away.
    pub async fn sink(&self, spec: SinkSpec) -> Result<Arc<dyn Sink>, ProvisionError> {
        provision::sink(self, &spec).await?;
        Ok(Arc::new(TopicSink::new(self, &spec)))
    }

    /// What the brokers say of the topic and the group for the findings.
    ///
    /// # Errors
    /// The brokers can't be asked.
    pub async fn facts(&self, spec: &SourceSpec) -> Result<GroupFacts, ProvisionError> {
        provision::facts(self, spec).await
    }

    /// Ends the client, its connections and its threads, within 3 seconds. What is asked afterwards fails.
    pub async fn close(&self) {
        let deadline = ShutdownDeadline::after(CLOSE);
        let idle = std::mem::take(&mut *self.client.idle());
        for handle in idle {
            let _ = tokio::time::timeout(deadline.remaining(), handle.shutdown_owned()).await;
        }
        let report = self.client.runtime.shutdown_until(deadline).await;
        if !report.is_healthy() {
            tracing::debug!(report = %report.to_json(), "rocketmq's client did not end in time");
        }
        let Some(owner) = self.client.take_owner() else { return };
        let _ = owner.shutdown_tasks_until(deadline).await;
        let _ = owner.shutdown_background();
    }

    /// A topic or a group as it is on the wire.
    pub(crate) fn name(&self, name: &str) -> String {
        names::within(self.namespace.as_deref(), name)
    }

    /// A handle for one request at a time.
    pub(crate) fn lease(&self) -> Result<Leased, Fault> {
        let idle = self.client.idle().pop();
        let handle = match idle {
            Some(handle) => handle,
            None => self.client.handle()?,
        };
        Ok(Leased { handle, client: Arc::clone(&self.client) })
    }
}

impl Client {
    fn new(settings: &RocketmqSettings) -> Result<Self, RocketmqError> {
        let failed = |text: String| RocketmqError::Client(text);
        let threads = RuntimeConfig {
            worker_threads: THREADS,
            thread_name: "rocketmq".to_owned(),
            shutdown_timeout: CLOSE,
            ..RuntimeConfig::default()
        };
        let plan = RuntimeOwner::plan(threads).map_err(|error| failed(error.to_string()))?;
        let owner = plan.build().map_err(|error| failed(error.to_string()))?;
        let runtime = ClientRuntime::try_new(
            owner.root_context().component("pumphouse"),
            ClientRuntimeConfig { shutdown_timeout: CLOSE, ..ClientRuntimeConfig::default() },
            TelemetryHandle::noop(),
        );
        let runtime = runtime.map_err(|error| failed(with_causes(&error)))?;
        Ok(Self {
            owner: Mutex::new(Some(owner)),
            runtime,
            config: config(settings).map_err(|error| failed(with_causes(&error)))?,
            hook: settings.access.as_ref().map(hook),
            idle: Mutex::default(),
        })
    }

    fn handle(&self) -> Result<Arc<ClientInstanceHandle>, Fault> {
        let (config, hook) = (self.config.clone(), self.hook.clone());
        let handle = ClientInstanceHandle::get_or_create(&self.runtime, DOMAIN, config, hook)?;
        Ok(Arc::new(handle))
    }

    fn give_back(&self, handle: Arc<ClientInstanceHandle>) {
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(handle);
            return;
        }
        drop(idle);
        // The client wants to be told of a handle's end, which takes a runtime.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { handle.shutdown_owned().await });
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ClientInstanceHandle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_owner(&self) -> Option<RuntimeOwner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Client {
    /// A connection that nobody closed takes its threads with it.
    fn drop(&mut self) {
        if let Some(owner) = self.take_owner() {
            let _ = owner.shutdown_background();
        }
    }
}

/// A handle that one request uses, and that goes back afterwards.
pub(crate) struct Leased {
    handle: Arc<ClientInstanceHandle>,
    client: Arc<Client>,
}

impl Deref for Leased {
    type Target = ClientInstanceHandle;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.client.give_back(Arc::clone(&self.handle));
    }
}

fn config(settings: &RocketmqSettings) -> ClientResult<ClientConfig> {
    let mut config = ClientConfig::builder()
        .namesrv_addr(settings.name_servers.join(";"))
        .instance_name(format!("pumphouse-{}", std::process::id()))
        // The broker's second port, which RocketMQ 5 no longer asks clients to use.
        .enable_vip_channel(false)
        .enable_trace(false)
        .build()?;
    if let Some(tls) = &settings.tls {
        speak_tls(&mut config, tls);
    }
    Ok(config)
}

fn speak_tls(config: &mut ClientConfig, tls: &Tls) {
    config.set_use_tls(true);
    config.set_tls_client_auth_server(true);
    if let Some(path) = &tls.trust {
        config.set_tls_client_trust_cert_path(path);
    }
    if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
        config.set_tls_client_cert_path(certificate);
        config.set_tls_client_key_path(key);
    }
}

fn hook(access: &Access) -> Arc<ClientRpcHook> {
    let credentials = SessionCredentials::with_keys(access.key.clone(), access.secret.clone());
    Arc::new(AclClientRPCHook::new(credentials))
}

/// The client takes the process's cryptography, and panics where there are two and none was named.
fn ensure_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
