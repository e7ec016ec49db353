//! What is asked, and what is answered.

use axum::extract::DefaultBodyLimit;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pumphouse_contract::ports::{Condition, HandlerStatus, SubscriptionStatus};
use serde::Serialize;

use crate::{AdminPorts, queues, tenants};

/// The media type that scrapers know.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) fn router(ports: AdminPorts) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/v1/tenants", get(tenants::tenants))
        .route("/v1/tenants/{tenant}", get(tenants::tenant))
        .route("/v1/handlers", get(tenants::handlers))
        .route("/v1/handlers/{tenant}/{handler}", get(tenants::handler))
        .route("/v1/queues/{queue}/messages", post(queues::publish).get(queues::peek))
        .layer(DefaultBodyLimit::max(queues::LONGEST_REQUEST))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(ports)
}

/// An answer that is true for this moment alone.
pub(crate) fn now(status: StatusCode, body: impl Serialize) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

async fn health() -> Response {
    now(StatusCode::OK, Health { status: "alive" })
}

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    /// The subscriptions that are not.
    not_ready: Vec<NotReady>,
}

#[derive(Serialize)]
struct NotReady {
    name: String,
    condition: &'static str,
    problem: Option<String>,
}

async fn readiness(State(ports): State<AdminPorts>) -> Response {
    let statuses = ports.subscriptions.list().into_iter();
    let not_ready: Vec<NotReady> =
        statuses.filter(|s| s.condition != Condition::Running).map(NotReady::from).collect();
    let ready = not_ready.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    now(status, Readiness { ready, not_ready })
}

impl From<SubscriptionStatus> for NotReady {
    fn from(status: SubscriptionStatus) -> Self {
        let SubscriptionStatus { name, condition, problem, .. } = status;
        Self { name, condition: condition.label(), problem }
    }
}

#[derive(Serialize)]
struct Status {
    version: &'static str,
    /// Why the configuration on disk is not in force.
    configuration_problem: Option<String>,
    subscriptions: Vec<Subscription>,
    handlers: Vec<Handler>,
}

#[derive(Serialize)]
struct Subscription {
    name: String,
    condition: &'static str,
    problem: Option<String>,
    in_flight: usize,
    oldest_in_progress_seconds: Option<f64>,
    handler: String,
}

impl From<SubscriptionStatus> for Subscription {
    fn from(status: SubscriptionStatus) -> Self {
        Self {
            name: status.name,
            condition: status.condition.label(),
            problem: status.problem,
            in_flight: status.in_flight,
            oldest_in_progress_seconds: status.oldest_in_progress.map(|age| age.as_secs_f64()),
            handler: status.handler,
        }
    }
}

#[derive(Serialize)]
struct Handler {
    name: String,
    digest: String,
    component: String,
    problem: Option<String>,
}

impl From<HandlerStatus> for Handler {
    fn from(status: HandlerStatus) -> Self {
        let HandlerStatus { name, digest, component, problem } = status;
        Self { name, digest, component, problem }
    }
}

async fn status(State(ports): State<AdminPorts>) -> Response {
    let status = Status {
        version: ports.version,
        configuration_problem: ports.subscriptions.rejected_configuration(),
        subscriptions: ports.subscriptions.list().into_iter().map(Into::into).collect(),
        handlers: ports.handlers.list().into_iter().map(Into::into).collect(),
    };
    now(StatusCode::OK, status)
}

async fn metrics(State(ports): State<AdminPorts>) -> Response {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], (ports.metrics)()).into_response()
}

#[derive(Serialize)]
struct Refusal {
    error: String,
}

/// Says what was wrong with a request.
pub(crate) fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    now(status, Refusal { error: error.into() })
}

async fn unknown() -> Response {
    let error = "no such path; there are /healthz, /readyz, /status, /metrics, /v1/tenants, /v1/handlers and /v1/queues/{queue}/messages";
    refuse(StatusCode::NOT_FOUND, error)
}

async fn wrong_method() -> Response {
    refuse(StatusCode::METHOD_NOT_ALLOWED, "this path is not asked with that method")
}
