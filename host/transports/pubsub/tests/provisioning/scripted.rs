//! A server that answers for policies and projects as a script says, and leaves everything else to the emulator.
//!
//! Policies are asked for by gRPC, which is HTTP/2; topics and subscriptions by HTTP/1.1: the first bytes of a
//! connection tell which it is.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use googleapis_tonic_google_cloud_resourcemanager_v3::google::cloud::resourcemanager::v3::{
    GetProjectRequest, Project,
};
use googleapis_tonic_google_iam_v1::google::iam::v1::{
    GetIamPolicyRequest, Policy, SetIamPolicyRequest,
};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::transport::server::Server;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

pub(crate) const NUMBER: &str = "415104041262";

/// The calls, as a script names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Project,
    Get,
    Set,
}

/// The helper that makes a call: the first grants on a topic, the second on a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum By {
    Publisher,
    Subscriber,
}

/// What the server answers, and what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    /// What is answered in place of the answer.
    pub(crate) codes: HashMap<(Call, By), Code>,
    pub(crate) policies: BTreeMap<String, Policy>,
    /// How many writers are quicker than the next writes.
    pub(crate) races: u32,
    /// What a project is called; none for its number.
    pub(crate) project: Option<String>,
    pub(crate) calls: Vec<(Call, String)>,
    versions: u64,
}

impl Script {
    pub(crate) fn count(&self, call: Call) -> usize {
        self.calls.iter().filter(|(made, _)| *made == call).count()
    }

    fn begin(&mut self, call: Call, by: By, resource: &str) -> Result<(), Status> {
        self.calls.push((call, resource.to_owned()));
        match self.codes.get(&(call, by)) {
            None | Some(Code::Ok) => Ok(()),
            Some(code) => Err(Status::new(*code, "as scripted")),
        }
    }

    /// The helpers run one after another, and each asks once.
    fn project(&mut self, asked: &GetProjectRequest) -> Result<Project, Status> {
        let by = if self.count(Call::Project) == 0 { By::Publisher } else { By::Subscriber };
        self.begin(Call::Project, by, &asked.name)?;
        let name = self.project.clone().unwrap_or_else(|| format!("projects/{NUMBER}"));
        Ok(Project { name, ..Project::default() })
    }

    fn get(&mut self, asked: &GetIamPolicyRequest) -> Result<Policy, Status> {
        self.begin(Call::Get, by(&asked.resource), &asked.resource)?;
        Ok(self.policies.entry(asked.resource.clone()).or_default().clone())
    }

    fn set(&mut self, asked: SetIamPolicyRequest) -> Result<Policy, Status> {
        self.begin(Call::Set, by(&asked.resource), &asked.resource)?;
        self.versions += 1;
        let etag = self.versions.to_string().into_bytes().into();
        let held = self.policies.entry(asked.resource).or_default();
        if self.races > 0 {
            self.races -= 1;
            held.etag = etag;
        }
        let mut policy = asked.policy.unwrap_or_default();
        if policy.etag != held.etag {
            return Err(Status::aborted("someone else wrote it"));
        }
        policy.etag = self.versions.to_string().into_bytes().into();
        *held = policy.clone();
        Ok(policy)
    }
}

fn by(resource: &str) -> By {
    if resource.contains("/topics/") { By::Publisher } else { By::Subscriber }
}

/// The running server; it ends when dropped.
pub(crate) struct Scripted {
    pub(crate) endpoint: String,
    pub(crate) script: Arc<Mutex<Script>>,
    _tasks: JoinSet<()>,
}

impl Scripted {
    pub(crate) async fn start(emulator: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Arc::new(Mutex::new(Script::default()));
        let (calls, accepted) = mpsc::channel(16);
        let behind = emulator.trim_start_matches("http://").to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, behind, calls));
        tasks.spawn(serve(Policies(Arc::clone(&script)), accepted));
        Self { endpoint, script, _tasks: tasks }
    }

    pub(crate) fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().expect("not poisoned")
    }
}

async fn accept(listener: TcpListener, behind: String, calls: mpsc::Sender<TcpStream>) {
    let mut passing = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let (behind, calls) = (behind.clone(), calls.clone());
        passing.spawn(async move {
            let mut first = [0; 3];
            if stream.peek(&mut first).await.is_ok() && &first == b"PRI" {
                let _ = calls.send(stream).await;
            } else if let Ok(mut emulator) = TcpStream::connect(&behind).await {
                let _ = copy_bidirectional(&mut stream, &mut emulator).await;
            }
        });
    }
}

async fn serve(policies: Policies, accepted: mpsc::Receiver<TcpStream>) {
    let streams = futures_util::stream::unfold(accepted, |mut accepted| async {
        accepted.recv().await.map(|stream| (Ok::<_, std::io::Error>(stream), accepted))
    });
    Server::builder().serve_with_incoming(policies, streams).await.expect("a server");
}

#[derive(Clone)]
struct Policies(Arc<Mutex<Script>>);

impl Service<http::Request<Body>> for Policies {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let script = Arc::clone(&self.0);
        Box::pin(async move {
            let script = || script.lock().expect("not poisoned");
            Ok(match request.uri().path() {
                "/google.cloud.resourcemanager.v3.Projects/GetProject" => {
                    answer(request, |asked| script().project(&asked)).await
                }
                "/google.iam.v1.IAMPolicy/GetIamPolicy" => {
                    answer(request, |asked| script().get(&asked)).await
                }
                "/google.iam.v1.IAMPolicy/SetIamPolicy" => {
                    answer(request, |asked| script().set(asked)).await
                }
                other => Status::unimplemented(other).into_http(),
            })
        })
    }
}

/// Answers one call.
async fn answer<M, R>(
    request: http::Request<Body>,
    answer: impl FnMut(M) -> Result<R, Status>,
) -> http::Response<Body>
where
    M: prost::Message + Default + 'static,
    R: prost::Message + 'static,
{
    let mut server = tonic::server::Grpc::new(ProstCodec::<R, M>::default());
    server.unary(Answer(answer), request).await
}

struct Answer<F>(F);

impl<F, M, R> Service<Request<M>> for Answer<F>
where
    F: FnMut(M) -> Result<R, Status>,
{
    type Response = Response<R>;
    type Error = Status;
    type Future = Ready<Result<Response<R>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<M>) -> Self::Future {
        ready((self.0)(request.into_inner()).map(Response::new))
    }
}
