//! What a good consumer looks like that someone writes by hand on the client: several loops, each of which pops a
//! batch, handles its messages at once, acknowledges each of them, all at once, and begins again.
//!
//! The client lets one request at a time through a handle, so each request in progress has one of its own.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use cheetah_string::CheetahString;
use futures_util::future::{join_all, try_join_all};
use pumphouse_contract::Outcome;
use pumphouse_rocketmq::Kind;
use rocketmq_client_rust::{
    ClientConfig, ClientInstanceHandle, ClientRuntime, ClientRuntimeConfig, TelemetryHandle,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_protocol::protocol::header::ack_message_request_header::AckMessageRequestHeader;
use rocketmq_protocol::protocol::header::pop_message_request_header::PopMessageRequestHeader;
use rocketmq_runtime::{RuntimeConfig, RuntimeOwner, ShutdownDeadline};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{LEASE, Setting};
use crate::measure::{Sample, Stopwatch};

const PATIENCE: Duration = Duration::from_secs(120);
/// Of one pop that finds nothing.
const WAIT: Duration = Duration::from_secs(1);
const REQUEST: Duration = Duration::from_secs(10);
const CLOSE: Duration = Duration::from_secs(3);
/// The client's own threads, as many as the product gives it.
const THREADS: usize = 2;
/// Another client of this process than the product's.
const DOMAIN: u64 = 2;

/// The client, and its handles that nobody uses at the moment.
#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

struct Inner {
    owner: Mutex<Option<RuntimeOwner>>,
    runtime: Arc<ClientRuntime>,
    config: ClientConfig,
    idle: Mutex<Vec<Arc<ClientInstanceHandle>>>,
}

impl Client {
    pub(super) async fn connect(namesrv: &str) -> Result<Self> {
        let threads = RuntimeConfig {
            worker_threads: THREADS,
            thread_name: "plain".to_owned(),
            ..RuntimeConfig::default()
        };
        let owner = RuntimeOwner::plan(threads)?.build()?;
        let context = owner.root_context().component("plain");
        let settings = ClientRuntimeConfig::default();
        let runtime = ClientRuntime::try_new(context, settings, TelemetryHandle::noop())?;
        let config = ClientConfig::builder()
            .namesrv_addr(namesrv.to_owned())
            .instance_name(format!("plain-{}", std::process::id()))
            .enable_vip_channel(false)
            .enable_trace(false)
            .build()?;
        let owner = Mutex::new(Some(owner));
        let this = Self(Arc::new(Inner { owner, runtime, config, idle: Mutex::default() }));
        this.handle()?.start().await?;
        Ok(this)
    }

    /// For one request at a time; it goes back when it is dropped.
    fn handle(&self) -> Result<Handle> {
        let idle = self.idle().pop();
        let handle = match idle {
            Some(handle) => handle,
            None => {
                let Inner { runtime, config, .. } = &*self.0;
                let new =
                    ClientInstanceHandle::get_or_create(runtime, DOMAIN, config.clone(), None);
                Arc::new(new?)
            }
        };
        Ok(Handle { handle, client: self.clone() })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ClientInstanceHandle>>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn close(&self) {
        let deadline = ShutdownDeadline::after(CLOSE);
        let idle = std::mem::take(&mut *self.idle());
        for handle in idle {
            handle.shutdown_owned().await;
        }
        self.0.runtime.shutdown_until(deadline).await;
        let owner = self.0.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(owner) = owner {
            let _ = owner.shutdown_background();
        }
    }
}

/// A handle that one request uses.
struct Handle {
    handle: Arc<ClientInstanceHandle>,
    client: Client,
}

impl Deref for Handle {
    type Target = ClientInstanceHandle;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.client.idle().push(self.handle.clone());
    }
}

/// What is consumed.
pub(super) struct Work {
    pub(super) setting: Setting,
    pub(super) topic: String,
    pub(super) group: String,
    pub(super) messages: usize,
}

/// Handles and acknowledges all messages; gives what each cost, and how many requests all of them took.
pub(super) async fn consume(client: &Client, work: Work) -> Result<(Sample, usize)> {
    let Work { setting, topic, group, messages } = work;
    let watch = Stopwatch::start();
    let consumer = Arc::new(Consumer {
        broker: Broker::of(client, &topic).await?,
        client: client.clone(),
        setting,
        topic: topic.into(),
        group: group.into(),
        free: Arc::new(Semaphore::new(setting.concurrency)),
        left: AtomicUsize::new(messages),
        requests: AtomicUsize::new(0),
        finished: CancellationToken::new(),
    });
    let mut pollers = JoinSet::new();
    for _ in 0..setting.pollers {
        pollers.spawn(consumer.clone().poll());
    }
    let ended = async {
        tokio::select! {
            () = consumer.finished.cancelled() => Ok(()),
            Some(ended) = pollers.join_next() => ended?,
        }
    };
    timeout(PATIENCE, ended).await.context("the plain consumer stands still")??;
    let (sample, requests) = (watch.stop(messages), consumer.requests.load(Ordering::Relaxed));
    // The last pops, which find nothing, would be there in another's turn.
    while let Some(ended) = pollers.join_next().await {
        ended??;
    }
    Ok((sample, requests))
}

struct Broker {
    name: CheetahString,
    address: CheetahString,
}

impl Broker {
    async fn of(client: &Client, topic: &str) -> Result<Self> {
        let route = client.handle()?.topic_route(topic, millis(REQUEST)).await?;
        let route = route.context("the topic has no route")?;
        let broker = route.broker_datas.first().context("the topic has no broker")?;
        let address = broker.broker_addrs().get(&0).context("the broker has no address")?;
        Ok(Self { name: broker.broker_name().clone(), address: address.clone() })
    }
}

struct Consumer {
    client: Client,
    broker: Broker,
    setting: Setting,
    topic: CheetahString,
    group: CheetahString,
    /// For messages in progress.
    free: Arc<Semaphore>,
    left: AtomicUsize,
    requests: AtomicUsize,
    finished: CancellationToken,
}

impl Consumer {
    /// Pops again while the messages before are acknowledged.
    async fn poll(self: Arc<Self>) -> Result<()> {
        let mut acknowledging = JoinSet::new();
        while !self.finished.is_cancelled() {
            let permits = self.free.clone().acquire_many_owned(u32::try_from(self.setting.batch)?);
            let permits = permits.await?;
            let messages = self.pop().await?;
            if !messages.is_empty() {
                acknowledging.spawn(self.clone().handle(messages, permits));
            }
            while let Some(ended) = acknowledging.try_join_next() {
                ended??;
            }
        }
        Ok(())
    }

    async fn handle(
        self: Arc<Self>,
        messages: Vec<MessageExt>,
        permits: OwnedSemaphorePermit,
    ) -> Result<()> {
        let handled = join_all(messages.iter().map(handle)).await;
        ensure!(handled.iter().all(|outcome| *outcome == Outcome::Ack), "not acknowledged");
        try_join_all(messages.iter().map(|message| self.acknowledge(message))).await?;
        drop(permits);
        let many = messages.len();
        if self.left.fetch_sub(many, Ordering::AcqRel) == many {
            self.finished.cancel();
        }
        Ok(())
    }

    async fn pop(&self) -> Result<Vec<MessageExt>> {
        let is_ordered = self.setting.kind == Kind::Fifo;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = PopMessageRequestHeader {
            consumer_group: self.group.clone(),
            topic: self.topic.clone(),
            queue_id: -1,
            max_msg_nums: u32::try_from(self.setting.batch)?,
            invisible_time: millis(LEASE),
            poll_time: millis(WAIT),
            born_time: u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
            init_mode: 0,
            exp_type: Some(CheetahString::from_static_str("TAG")),
            exp: Some(CheetahString::from_static_str("*")),
            order: Some(is_ordered),
            attempt_id: is_ordered.then(|| format!("plain-{number}").into()),
            topic_request_header: None,
        };
        let Broker { name, address } = &self.broker;
        let handle = self.client.handle()?;
        let popped = handle.pop_message(name, address, request, millis(REQUEST)).await?;
        Ok(popped.msg_found_list.unwrap_or_default())
    }

    async fn acknowledge(&self, message: &MessageExt) -> Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let receipt = message.properties().get("POP_CK").context("a message without a receipt")?;
        let request = AckMessageRequestHeader {
            consumer_group: self.group.clone(),
            topic: self.topic.clone(),
            queue_id: message.queue_id(),
            extra_info: receipt.clone(),
            offset: message.queue_offset(),
            lite_topic: None,
            topic_request_header: None,
        };
        let address = &self.broker.address;
        let handle = self.client.handle()?;
        let answer = handle.ack_message(address, request, millis(REQUEST)).await?;
        ensure!(answer.status().to_i32() == 0, "not acknowledged");
        Ok(())
    }
}

/// What the native handler does, with the body and the properties as the client gives them.
async fn handle(message: &MessageExt) -> Outcome {
    let body = message.body().map(|body| body.to_vec());
    std::hint::black_box((message.msg_id().clone(), message.properties().clone(), body));
    Outcome::Ack
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
