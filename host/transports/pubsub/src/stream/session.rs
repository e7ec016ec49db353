//! The call: opened, kept open, and opened again.

use std::sync::Arc;
use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::StreamingPullRequest;
use pumphouse_contract::{Backoff, Count, Jitter, Roll};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, interval_at, sleep};
use tonic::Status;

use super::{Link, Stream};
use crate::calls::{Fault, Kind};
use crate::pull::receive_error;

/// The service ends a stream on which nothing was said for 90 s.
const SAY_SOMETHING: Duration = Duration::from_secs(30);

/// A stream is answered with its first message. Where that does not come soon, another call tells whether the
/// service is there.
const FIRST: Duration = Duration::from_millis(200);

/// A stream that lasted so long was a good one.
const STEADY: Duration = Duration::from_secs(10);

/// How long a stream that is stopped may take to its end. What was on its way is given back then; of a stream that is
/// merely dropped it would stay leased.
const LAST: Duration = Duration::from_millis(500);

/// Waits between attempts.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    max: Duration::from_secs(10),
    jitter: Jitter::Full,
};

impl Stream {
    /// Keeps the stream open until it is stopped; gives back then what it holds.
    pub(super) async fn run(self: Arc<Self>) {
        let overdue = async {
            self.stop.cancelled().await;
            sleep(LAST).await;
        };
        tokio::select! {
            () = self.stay_open() => {}
            () = self.keep() => {}
            () = overdue => {}
        }
        self.give_all_back().await;
        self.stopped.cancel();
    }

    /// Whatever ends it but a stop, it is opened again: what is wrong may be put right. An end of one that was open is the
    /// service's habit and no news; it is when it can't be opened anew, or ends again soon.
    async fn stay_open(&self) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let fault = self.session().await;
            tracing::debug!(subscription = self.name(), problem = fault.text, "the stream ended");
            if self.stop.is_cancelled() {
                return;
            }
            if began.elapsed() >= STEADY {
                failures = 0;
            }
            let was_up = self.state().link == Link::Up;
            self.set(match was_up && failures == 0 && is_passing(&fault) {
                true => Link::Opening,
                false => Link::Down(receive_error(self.name(), fault)),
            });
            tokio::select! {
                () = sleep(backoff(failures)) => {}
                () = self.stop.cancelled() => return,
            }
            failures = failures.saturating_add(1);
        }
    }

    /// Opens the stream and reads it to its end; says why it ended.
    async fn session(&self) -> Fault {
        match self.opened().await {
            Ok(fault) | Err(fault) => fault,
        }
    }

    async fn opened(&self) -> Result<Fault, Fault> {
        let (say, said) = mpsc::channel(1);
        let requests = futures_util::stream::unfold(said, |mut said| async {
            said.recv().await.map(|request| (request, said))
        });
        let pubsub = &self.settler.pubsub;
        let request = pubsub.request(requests, ("subscription", self.name())).await?;
        // There is room for one.
        let _ = say.try_send(self.first());
        // Without it the service knows that we are done, and ends the stream.
        let mut say = Some(say);
        let mut client = pubsub.polls();
        let mut call = std::pin::pin!(client.streaming_pull(request));
        let mut confirm = std::pin::pin!(self.confirm());
        let mut confirmed = false;
        let mut quiet = interval_at(Instant::now() + SAY_SOMETHING, SAY_SOMETHING);
        let mut stream = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if say.is_some() => say = None,
                answer = &mut call => break answer?.into_inner(),
                answer = &mut confirm, if !confirmed => {
                    answer?;
                    confirmed = true;
                    self.set(Link::Up);
                }
                () = tick(&mut quiet) => say_something(say.as_ref()),
            }
        };
        self.set(Link::Up);
        loop {
            // Both can be dropped: a message that was not read to its end is read on.
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if say.is_some() => say = None,
                message = stream.message() => match message? {
                    Some(pushed) => self.pushed(pushed.received_messages).await,
                    None => return Ok(Status::unavailable("the service ended the stream").into()),
                },
                () = tick(&mut quiet) => say_something(say.as_ref()),
            }
        }
    }

    fn first(&self) -> StreamingPullRequest {
        StreamingPullRequest {
            subscription: self.name().to_owned(),
            stream_ack_deadline_seconds: i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX),
            client_id: self.client.clone(),
            // Not trusted: the emulator takes no notice of it.
            max_outstanding_messages: i64::try_from(self.outstanding).unwrap_or(i64::MAX),
            ..StreamingPullRequest::default()
        }
    }

    async fn confirm(&self) -> Result<(), Fault> {
        sleep(FIRST).await;
        self.settler.pubsub.confirm(self.name()).await
    }
}

/// Whether an end is one of those that a stream has without anything being wrong.
fn is_passing(fault: &Fault) -> bool {
    match fault.kind {
        Kind::Unavailable | Kind::Throttled => true,
        Kind::Missing | Kind::Denied | Kind::Sender => false,
    }
}

async fn tick(interval: &mut Interval) {
    interval.tick().await;
}

/// Where the one before was not sent yet, that one will do.
fn say_something(say: Option<&mpsc::Sender<StreamingPullRequest>>) {
    if let Some(say) = say {
        let _ = say.try_send(StreamingPullRequest::default());
    }
}

fn backoff(failures: u32) -> Duration {
    // Half of it is certain, so that an unlucky roll does not hammer a service that is down.
    BACKOFF.after(Count(failures), Roll::new(0.5 + rand::random::<f64>() / 2.0))
}
