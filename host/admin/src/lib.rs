//! What a host says of itself over HTTP: `/healthz`, `/readyz`, `/status` and `/metrics`.
//!
//! Beside them the queues of the embedded broker, `/v1/queues/{queue}/messages`, to publish to and to look into.
//! It is made for a loopback address or a network that is trusted: there is no encryption and nobody is asked who
//! they are.

mod answers;
mod queues;
mod server;

use std::sync::Arc;

use pumphouse_contract::ports::{Handlers, Queues, Subscriptions};

pub use server::{CONNECTION_TIMEOUT, HEADER_TIMEOUT, MOST_CONNECTIONS, STOP_GRACE, serve};

/// Gives the host's metrics as OpenMetrics text. Must not block.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What the admin side sees of the host.
#[derive(Clone)]
pub struct AdminPorts {
    /// The subscriptions, and whether the configuration on disk is in force.
    pub subscriptions: Arc<dyn Subscriptions>,
    /// The handlers.
    pub handlers: Arc<dyn Handlers>,
    /// The metrics.
    pub metrics: Metrics,
    /// The queues of the embedded broker, where there is one.
    pub queues: Option<Arc<dyn Queues>>,
    /// The version of the host.
    pub version: &'static str,
}
