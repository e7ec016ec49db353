use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::exchange::Exchange;
use super::gate::Gate;

/// Beyond this a new connection is closed at once.
const CONNECTIONS_LIMIT: usize = 512;
const LISTEN_TRIES: u32 = 250;
const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// A change to who may connect; the sender is told when it is in force.
pub(super) enum Command {
    Cut(oneshot::Sender<()>),
    CutOnce(oneshot::Sender<()>),
    Heal(oneshot::Sender<()>),
}

/// Owns the listener and all connections: when its task ends, so do they.
pub(super) struct Acceptor {
    address: SocketAddr,
    listener: Option<TcpListener>,
    connections: JoinSet<()>,
    exchange: Arc<Exchange>,
}

impl Acceptor {
    pub(super) fn new(address: SocketAddr, listener: TcpListener, exchange: Arc<Exchange>) -> Self {
        Self { address, listener: Some(listener), connections: JoinSet::new(), exchange }
    }

    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            // Each branch may be dropped halfway: a connection or command not taken stays queued.
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                stream = accept(self.listener.as_ref()) => self.admit(stream),
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        let done = match command {
            Command::Cut(done) => {
                self.listener = None;
                self.close_all().await;
                done
            }
            Command::CutOnce(done) => {
                self.close_all().await;
                done
            }
            Command::Heal(done) => {
                self.listen().await;
                done
            }
        };
        // Whoever asked may have given up waiting.
        let _ = done.send(());
    }

    async fn close_all(&mut self) {
        self.exchange.valve.set_abrupt(true);
        self.connections.shutdown().await;
        self.exchange.valve.set_abrupt(false);
    }

    /// The port is reserved for us, so the first try does; if not, clients see a refusal.
    async fn listen(&mut self) {
        for _ in 0..LISTEN_TRIES {
            if self.listener.is_some() {
                return;
            }
            match TcpListener::bind(self.address).await {
                Ok(listener) => self.listener = Some(listener),
                Err(_) => sleep(ACCEPT_RETRY).await,
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) {
        if self.connections.len() >= CONNECTIONS_LIMIT {
            return;
        }
        let gate = Gate::new(stream, self.exchange.valve.clone());
        let exchange = self.exchange.clone();
        let service = service_fn(move |request| exchange.clone().answer(request));
        self.connections.spawn(async move {
            let serving = http1::Builder::new().serve_connection(TokioIo::new(gate), service);
            // An error is a client that left, or a rule that closes the connection.
            let _ = serving.await;
        });
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}
