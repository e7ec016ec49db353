//! The subscriber of Google's own library, used as its documentation shows.

use std::time::Duration;

use anyhow::{Context, Result};
use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::Subscriber;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::MessageStream;
use pumphouse_contract::Outcome;
use tokio::time::timeout;

use crate::measure::{Sample, Stopwatch};

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn client(endpoint: &str) -> Result<Subscriber> {
    let credentials = anonymous::Builder::new().build();
    let builder = Subscriber::builder().with_endpoint(endpoint).with_credentials(credentials);
    Ok(builder.build().await?)
}

/// Handles and acknowledges so many messages; gives what each cost. It is over when the acknowledgements are sent
/// and answered, which this library tells nobody before it is shut down.
pub(super) async fn consume(
    client: &Subscriber,
    subscription: &str,
    messages: usize,
) -> Result<Sample> {
    let watch = Stopwatch::start();
    let mut stream = client.subscribe(subscription).build();
    let consumed = async {
        take(&mut stream, messages).await?;
        stream.shutdown_token().shutdown().await;
        anyhow::Ok(())
    };
    timeout(PATIENCE, consumed).await.context("the library's subscriber stands still")??;
    Ok(watch.stop(messages))
}

async fn take(stream: &mut MessageStream, messages: usize) -> Result<()> {
    for _ in 0..messages {
        let (message, handler) = stream.next().await.context("the stream ended")??;
        if handle(&message) == Outcome::Ack {
            handler.ack();
        }
    }
    Ok(())
}

/// What the native handler does, with the body and the attributes as the library gives them.
fn handle(message: &Message) -> Outcome {
    let copies = (message.message_id.clone(), message.attributes.clone(), message.data.to_vec());
    std::hint::black_box(copies);
    Outcome::Ack
}
