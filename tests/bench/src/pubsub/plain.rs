//! What a good consumer looks like that someone writes by hand on the raw API: a loop or several, each of which pulls a
//! batch, handles its messages at once, acknowledges them in one request, and begins again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::subscriber_client::SubscriberClient;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, PullRequest, ReceivedMessage,
};
use pumphouse_contract::Outcome;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Request;
use tonic::transport::Channel;

use super::BATCH;
use super::server::connect;
use crate::measure::{Sample, Stopwatch};

const PATIENCE: Duration = Duration::from_secs(120);
/// Of one pull. What the emulator answers it with depends on it: it ends an empty one a second before.
const WAIT: Duration = Duration::from_secs(2);
const LARGEST_ANSWER: usize = 64 << 20;

/// Two connections, as the product has: a pull that is answered never keeps an acknowledgement waiting.
#[derive(Clone)]
pub(super) struct Client {
    pulls: SubscriberClient<Channel>,
    acknowledgements: SubscriberClient<Channel>,
}

impl Client {
    pub(super) async fn connect(endpoint: &str) -> Result<Self> {
        let pulls = SubscriberClient::new(connect(endpoint).await?);
        Ok(Self {
            pulls: pulls.max_decoding_message_size(LARGEST_ANSWER),
            acknowledgements: SubscriberClient::new(connect(endpoint).await?),
        })
    }
}

/// Handles and acknowledges so many messages in so many loops; gives what each cost.
pub(super) async fn consume(
    client: &Client,
    subscription: &str,
    messages: usize,
    pollers: usize,
) -> Result<Sample> {
    let consumer = Arc::new(Consumer {
        client: client.clone(),
        subscription: subscription.to_owned(),
        left: AtomicUsize::new(messages),
        finished: Notify::new(),
    });
    let watch = Stopwatch::start();
    let mut loops = JoinSet::new();
    for _ in 0..pollers {
        let consumer = consumer.clone();
        loops.spawn(async move { consumer.poll().await });
    }
    let ended = async {
        tokio::select! {
            () = consumer.finished.notified() => Ok(()),
            Some(ended) = loops.join_next() => ended?,
        }
    };
    timeout(PATIENCE, ended).await.context("the plain consumer stands still")??;
    Ok(watch.stop(messages))
}

struct Consumer {
    client: Client,
    subscription: String,
    left: AtomicUsize,
    finished: Notify,
}

impl Consumer {
    /// Ends with an error alone.
    async fn poll(&self) -> Result<()> {
        loop {
            let messages = self.pull().await?;
            if messages.is_empty() {
                continue;
            }
            let handled = join_all(messages.iter().map(handle)).await;
            ensure!(handled.iter().all(|outcome| *outcome == Outcome::Ack), "not acknowledged");
            let many = messages.len();
            self.acknowledge(messages).await?;
            if self.left.fetch_sub(many, Ordering::AcqRel) == many {
                self.finished.notify_one();
            }
        }
    }

    async fn pull(&self) -> Result<Vec<ReceivedMessage>> {
        let mut request = Request::new(PullRequest {
            subscription: self.subscription.clone(),
            max_messages: i32::try_from(BATCH)?,
            ..PullRequest::default()
        });
        request.set_timeout(WAIT);
        Ok(self.client.pulls.clone().pull(request).await?.into_inner().received_messages)
    }

    async fn acknowledge(&self, messages: Vec<ReceivedMessage>) -> Result<()> {
        let request = AcknowledgeRequest {
            subscription: self.subscription.clone(),
            ack_ids: messages.into_iter().map(|message| message.ack_id).collect(),
        };
        self.client.acknowledgements.clone().acknowledge(request).await?;
        Ok(())
    }
}

/// What the native handler does, with the body and the attributes as the stubs give them.
async fn handle(received: &ReceivedMessage) -> Outcome {
    let copies = received.message.as_ref().map(|message| {
        (message.message_id.clone(), message.attributes.clone(), message.data.to_vec())
    });
    std::hint::black_box(copies);
    Outcome::Ack
}
