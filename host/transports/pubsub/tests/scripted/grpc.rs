//! The interface, by hand: the stubs have clients only.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, once, unfold};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, GetSubscriptionRequest, ModifyAckDeadlineRequest, StreamingPullRequest,
    StreamingPullResponse, Subscription,
};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::{Call, End, Script, Shared, status};

/// How a lease is told from a delay: every lease of the tests is longer.
const LONGEST_DELAY: i32 = 30;

#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<Shared>);

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;

impl tonic::codegen::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
            Ok(match method.as_str() {
                "Acknowledge" => unary(Acknowledge(shared), request).await,
                "ModifyAckDeadline" => unary(Modify(shared), request).await,
                "GetSubscription" => unary(Get(shared), request).await,
                "StreamingPull" => {
                    let codec =
                        ProstCodec::<StreamingPullResponse, StreamingPullRequest>::default();
                    Grpc::new(codec).streaming(Stream(shared), request).await
                }
                _ => Status::unimplemented(method).into_http(),
            })
        })
    }
}

async fn unary<S, Q, A>(service: S, request: http::Request<Body>) -> http::Response<Body>
where
    S: UnaryService<Q, Response = A>,
    Q: prost::Message + Default + Send + 'static,
    A: prost::Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::<A, Q>::default()).unary(service, request).await
}

async fn follow(script: Option<Script>, act: impl FnOnce()) -> Result<(), Status> {
    match script {
        None => act(),
        Some(Script::DoneBut(code)) => {
            act();
            return Err(status(code));
        }
        Some(Script::Fails(code)) => return Err(status(code)),
        Some(Script::Hangs) => pending::<()>().await,
    }
    Ok(())
}

async fn unless_silent(shared: &Shared) {
    if shared.scripts().silent {
        pending::<()>().await;
    }
}

struct Acknowledge(Arc<Shared>);

impl UnaryService<AcknowledgeRequest> for Acknowledge {
    type Response = ();
    type Future = Answer<Response<()>>;

    fn call(&mut self, request: Request<AcknowledgeRequest>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            unless_silent(&shared).await;
            let script = shared.scripts().acknowledge.pop_front();
            let ids = request.into_inner().ack_ids;
            follow(script, || shared.model().acknowledge(&ids)).await?;
            shared.changed.notify_waiters();
            Ok(Response::new(()))
        })
    }
}

struct Modify(Arc<Shared>);

impl UnaryService<ModifyAckDeadlineRequest> for Modify {
    type Response = ();
    type Future = Answer<Response<()>>;

    fn call(&mut self, request: Request<ModifyAckDeadlineRequest>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            unless_silent(&shared).await;
            let script = shared.scripts().modify.pop_front();
            let ModifyAckDeadlineRequest { ack_ids, ack_deadline_seconds: seconds, .. } =
                request.into_inner();
            let longer = seconds > LONGEST_DELAY;
            follow(script, || shared.model().modify(&ack_ids, seconds, longer)).await?;
            shared.changed.notify_waiters();
            Ok(Response::new(()))
        })
    }
}

struct Get(Arc<Shared>);

impl UnaryService<GetSubscriptionRequest> for Get {
    type Response = Subscription;
    type Future = Answer<Response<Subscription>>;

    fn call(&mut self, request: Request<GetSubscriptionRequest>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            unless_silent(&shared).await;
            let name = request.into_inner().subscription;
            Ok(Response::new(Subscription { name, ..Subscription::default() }))
        })
    }
}

struct Stream(Arc<Shared>);

type Pushes = BoxStream<'static, Result<StreamingPullResponse, Status>>;

impl StreamingService<StreamingPullRequest> for Stream {
    type Response = StreamingPullResponse;
    type ResponseStream = Pushes;
    type Future = Answer<Response<Pushes>>;

    fn call(&mut self, request: Request<Streaming<StreamingPullRequest>>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            unless_silent(&shared).await;
            let script = shared.scripts().streams.pop_front();
            follow(script, || {}).await?;
            let mut requests = request.into_inner();
            let first = requests.message().await?.ok_or_else(|| status(tonic::Code::Cancelled))?;
            let seconds = first.stream_ack_deadline_seconds;
            let call = Call::Stream(first.client_id, seconds, first.max_outstanding_messages);
            shared.model().calls.push(call);
            let lease = Duration::from_secs(seconds.try_into().unwrap());
            let (pushes, mut pushed) = mpsc::channel(1);
            tokio::spawn(push(shared, lease, pushes, requests));
            // The service answers with its first message.
            let first = pushed.recv().await.ok_or_else(|| status(tonic::Code::Cancelled))??;
            let rest =
                unfold(pushed, |mut pushed| async { pushed.recv().await.map(|it| (it, pushed)) });
            Ok(Response::new(once(async { Ok(first) }).chain(rest).boxed()))
        })
    }
}

async fn push(
    shared: Arc<Shared>,
    lease: Duration,
    pushes: mpsc::Sender<Result<StreamingPullResponse, Status>>,
    // An end of the requests ends the stream.
    mut requests: Streaming<StreamingPullRequest>,
) {
    let born = shared.scripts().generation;
    loop {
        let ended = shared.scripts().ended.clone().filter(|(generation, _)| *generation > born);
        if let Some((_, end)) = ended {
            if let End::With(code) = end {
                let _ = pushes.send(Err(status(code))).await;
            }
            return;
        }
        let silent = shared.scripts().silent;
        let due = if silent { Vec::new() } else { shared.model().due(lease) };
        if !due.is_empty() {
            let push = StreamingPullResponse { received_messages: due, ..Default::default() };
            if pushes.send(Ok(push)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = shared.changed.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
            () = pushes.closed() => return,
            request = requests.message() => if !matches!(request, Ok(Some(_))) { return },
        }
    }
}
