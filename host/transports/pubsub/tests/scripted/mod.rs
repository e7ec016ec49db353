//! A server of Pub/Sub's subscriber interface that follows a script, and counts deliveries as Pub/Sub does: one, and
//! one for each time that a message went back or its lease ended.
//!
//! It keeps the order of a key as the service does: what was sent after a message that goes back is sent again
//! after it. Like the service it answers a stream with its first message, and unlike it, it takes no notice of the
//! client's flow control, as the emulator does not.
#![allow(dead_code, reason = "each test uses a part of it")]

mod grpc;
mod model;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};

pub(crate) use model::{Call, Model, Sent};

/// How one call goes.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// It is done, and answered with this.
    DoneBut(Code),
    /// It is not done.
    Fails(Code),
    /// It is never answered.
    Hangs,
}

/// How the open streams end.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Clean,
    With(Code),
}

#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) acknowledge: VecDeque<Script>,
    pub(crate) modify: VecDeque<Script>,
    pub(crate) streams: VecDeque<Script>,
    /// Nothing is answered while it is set.
    pub(crate) silent: bool,
    /// Told to every stream that is older.
    pub(crate) ended: Option<(u64, End)>,
    pub(crate) generation: u64,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) model: Mutex<Model>,
    pub(crate) scripts: Mutex<Scripts>,
    pub(crate) changed: Notify,
}

impl Shared {
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    pub(crate) fn scripts(&self) -> MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap()
    }
}

pub(crate) struct Scripted {
    pub(crate) shared: Arc<Shared>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = grpc::Service(shared.clone());
        let task = tokio::spawn(async move {
            let incoming = TcpIncoming::from(listener);
            Server::builder().serve_with_incoming(service, incoming).await.unwrap();
        });
        Self { shared, address, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Publishes; an empty key is none.
    pub(crate) fn publish(&self, key: &str, data: &[&str]) {
        for data in data {
            self.shared.model().publish(key, data);
        }
        self.shared.changed.notify_waiters();
    }

    pub(crate) fn acknowledge_goes(&self, script: Script) {
        self.shared.scripts().acknowledge.push_back(script);
    }

    pub(crate) fn modify_goes(&self, script: Script) {
        self.shared.scripts().modify.push_back(script);
    }

    pub(crate) fn stream_goes(&self, script: Script) {
        self.shared.scripts().streams.push_back(script);
    }

    pub(crate) fn silent(&self, silent: bool) {
        self.shared.scripts().silent = silent;
        self.shared.changed.notify_waiters();
    }

    /// Ends the streams that are open.
    pub(crate) fn end_streams(&self, end: End) {
        let mut scripts = self.shared.scripts();
        scripts.generation += 1;
        let generation = scripts.generation;
        scripts.ended = Some((generation, end));
        drop(scripts);
        self.shared.changed.notify_waiters();
    }

    /// Sends a message again although its lease has not ended.
    pub(crate) fn send_again(&self, data: &str) {
        self.shared.model().send_again(data);
        self.shared.changed.notify_waiters();
    }

    /// Every delivery so far: what, and the count that it said.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.shared.model().sent.clone()
    }

    /// How often a message was delivered.
    pub(crate) fn count(&self, data: &str) -> i32 {
        self.shared.model().count(data)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.model().calls.clone()
    }

    /// How many streams were opened.
    pub(crate) fn streams(&self) -> usize {
        self.calls().iter().filter(|call| matches!(call, Call::Stream(..))).count()
    }

    /// The calls that changed leases: what, and for how many seconds.
    pub(crate) fn modified(&self) -> Vec<(Vec<String>, i32)> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|call| match call {
                Call::Modify(data, seconds) => Some((data, seconds)),
                Call::Acknowledge(_) | Call::Stream(..) => None,
            })
            .collect()
    }

    /// What is not acknowledged.
    pub(crate) fn left(&self) -> Vec<String> {
        self.shared.model().left()
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(15);
        while !holds(self) {
            assert!(
                Instant::now() < end,
                "never: {what}; sent {:?}; calls {:?}",
                self.sent(),
                self.calls()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn status(code: Code) -> Status {
    Status::new(code, "as the script says")
}
