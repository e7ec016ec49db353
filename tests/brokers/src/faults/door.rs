use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::gate::{Gate, Valve};
use crate::Error;
use crate::port::Port;

/// Beyond this a new connection is closed at once.
const CONNECTIONS_LIMIT: usize = 512;
const LISTEN_TRIES: u32 = 250;
const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// What a proxy does with a connection.
pub(crate) trait Serve: Send + Sync + 'static {
    /// What can happen to its connections.
    fn valve(&self) -> &Arc<Valve>;

    /// Serves one until it ends. Dropped halfway when the connection is cut.
    fn serve(self: Arc<Self>, gate: Gate) -> impl Future<Output = ()> + Send;
}

/// A change to who may connect.
#[derive(Debug, Clone, Copy)]
enum Change {
    Refuse,
    Accept,
    Close,
}

/// The sender is told when the change is in force.
type Command = (Change, oneshot::Sender<()>);

/// A listening port and the connections that came through it; all closed when dropped.
#[derive(Debug)]
pub(crate) struct Door {
    port: Port,
    commands: mpsc::Sender<Command>,
    acceptor: JoinHandle<()>,
}

impl Door {
    /// Listens on a free port of loopback; `serve` makes what serves, given the address.
    pub(crate) async fn open<S: Serve>(
        serve: impl FnOnce(SocketAddr) -> Arc<S>,
    ) -> Result<(Self, Arc<S>), Error> {
        let port = Port::reserve()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port.number));
        let listener = bind(address).await.map_err(|source| Error::Io {
            doing: format!("listening on {address} failed"),
            source,
        })?;
        let serve = serve(address);
        let (commands, receiver) = mpsc::channel(8);
        let acceptor = Acceptor::new(address, listener, serve.clone());
        let acceptor = tokio::spawn(acceptor.run(receiver));
        Ok((Self { port, commands, acceptor }, serve))
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    /// Closes every connection; returns when they are gone.
    pub(crate) async fn close_all(&self) {
        self.command(Change::Close).await;
    }

    /// Refuses new connections; returns when it does.
    pub(crate) async fn refuse(&self) {
        self.command(Change::Refuse).await;
    }

    /// Takes new connections; returns when it does.
    pub(crate) async fn accept(&self) {
        self.command(Change::Accept).await;
    }

    async fn command(&self, change: Change) {
        let (done, wait) = oneshot::channel();
        // The acceptor ends only with this handle, so both succeed.
        if self.commands.send((change, done)).await.is_ok() {
            let _ = wait.await;
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// Owns the listener and all connections: when its task ends, so do they.
struct Acceptor<S> {
    address: SocketAddr,
    listener: Option<TcpListener>,
    connections: JoinSet<()>,
    serve: Arc<S>,
}

impl<S: Serve> Acceptor<S> {
    fn new(address: SocketAddr, listener: TcpListener, serve: Arc<S>) -> Self {
        Self { address, listener: Some(listener), connections: JoinSet::new(), serve }
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
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

    async fn obey(&mut self, (change, done): Command) {
        match change {
            Change::Refuse => self.listener = None,
            Change::Accept => self.listen().await,
            Change::Close => self.close_all().await,
        }
        // Whoever asked may have given up waiting.
        let _ = done.send(());
    }

    async fn close_all(&mut self) {
        self.serve.valve().set_abrupt(true);
        self.connections.shutdown().await;
        self.serve.valve().set_abrupt(false);
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
        // Without it a small frame would wait for the confirmation of the one before it.
        let _ = stream.set_nodelay(true);
        let gate = Gate::new(stream, self.serve.valve().clone());
        self.connections.spawn(self.serve.clone().serve(gate));
    }
}

/// The port is ours. But a process that is being started at this moment, from another thread, may still hold the
/// listener that it was tried with.
async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    for _ in 1..LISTEN_TRIES {
        if let Ok(listener) = TcpListener::bind(address).await {
            return Ok(listener);
        }
        sleep(ACCEPT_RETRY).await;
    }
    TcpListener::bind(address).await
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
