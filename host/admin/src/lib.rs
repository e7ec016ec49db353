//! What a host says of itself over HTTP: `/healthz`, `/readyz`, `/status` and `/metrics`.
//!
//! Beside them the tenants and their handlers with limits, grants and accounts, `/v1/tenants` and `/v1/handlers`, and
//! the queues of the embedded broker, `/v1/queues/{queue}/messages`, to publish to and to look into.
//! It is made for a loopback address or a network that is trusted: there is no encryption and nobody is asked who
//! they are.

mod answers;
mod queues;
mod server;
mod tenants;

use std::sync::Arc;

use pumphouse_contract::ports::{Handlers, Queues, Subscriptions, Tenants, Terms};

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
    /// The tenants and what they used.
    pub tenants: Arc<dyn Tenants>,
    /// What the configuration in force says of tenants and handlers.
    pub terms: Arc<dyn Terms>,
    /// The metrics.
    pub metrics: Metrics,
    /// The queues of the embedded broker, where there is one.
    pub queues: Option<Arc<dyn Queues>>,
    /// The version of the host.
    pub version: &'static str,
}
