//! Accepts and bounds connections, so that no client can hold the host.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::{AdminPorts, answers};

/// How many connections are open at once; more wait to be accepted.
pub const MOST_CONNECTIONS: usize = 64;

/// How long a client may take to send its request.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a connection may last. It carries one request.
pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long open connections may last once serving ends.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// The longest wait between two attempts to accept where the system has no room for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The most bytes of a request's line and headers.
const HEADER_BYTES: usize = 16 * 1024;

/// Answers on `listener` until `shutdown` is done, and then for at most [`STOP_GRACE`].
///
/// A connection carries one request, lasts at most [`CONNECTION_TIMEOUT`] and has [`HEADER_TIMEOUT`] to ask; a
/// request's body is bounded. At most [`MOST_CONNECTIONS`] are open at once. Dropping the future closes them all.
///
/// # Errors
/// The listener has no address: it is not one.
pub async fn serve(
    listener: TcpListener,
    ports: AdminPorts,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    tracing::info!(%address, "admin listener serves");
    let router = answers::router(ports);
    let (stop, stopping) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Each branch can be dropped at any await: a connection is either accepted and spawned or still queued.
        tokio::select! {
            () = &mut shutdown => break,
            stream = accept(&listener), if connections.len() < MOST_CONNECTIONS => {
                connections.spawn(converse(stream, router.clone(), stopping.clone()));
            }
            Some(ended) = connections.join_next() => note(ended),
        }
    }
    drop(listener);
    drop(stop);
    finish(connections).await;
    tracing::info!(%address, "admin listener closed");
    Ok(())
}

/// The next connection. A client that is gone again is none; a system without room is asked again.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "admin listener can't accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

/// One request and its answer.
async fn converse(stream: TcpStream, router: Router, stopping: watch::Receiver<()>) {
    let bounded = timeout(CONNECTION_TIMEOUT, answer(stream, router, stopping)).await;
    match bounded {
        Ok(Ok(())) => {}
        // Clients come and go as they like.
        Ok(Err(error)) => tracing::debug!(%error, "admin connection failed"),
        Err(_) => tracing::debug!("admin connection took too long"),
    }
}

async fn answer(
    stream: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<()>,
) -> hyper::Result<()> {
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(HEADER_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    tokio::select! {
        result = connection.as_mut() => result,
        // The sender is dropped when serving ends: who has not asked by then is not answered.
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

async fn finish(mut connections: JoinSet<()>) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            note(ended);
        }
    };
    if timeout(STOP_GRACE, all).await.is_err() {
        connections.shutdown().await;
    }
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an admin request ended without an answer");
    }
}
