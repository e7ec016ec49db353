//! Tenants and handlers: what they may use, and what they have used.

use std::collections::BTreeMap;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use pumphouse_contract::Account;
use pumphouse_contract::ports::{HandlerStatus, TenantStatus};
use pumphouse_contract::terms::Limit;
use serde::{Deserialize, Serialize};

use crate::AdminPorts;
use crate::answers::{now, refuse};

/// How many are on a page where the request doesn't say.
const DEFAULT_PAGE: usize = 100;
/// The most on a page.
const LARGEST_PAGE: usize = 1_000;

/// Which page of a list: those whose name comes after `after`, at most `limit` of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    limit: Option<usize>,
    #[serde(default)]
    after: String,
}

/// Which handlers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlersPage {
    limit: Option<usize>,
    #[serde(default)]
    after: String,
    tenant: Option<String>,
}

type Asked<T> = Result<Query<T>, QueryRejection>;

#[derive(Serialize)]
struct TenantList {
    tenants: Vec<Tenant>,
    /// What to ask for after this page; none at the end.
    next: Option<String>,
}

#[derive(Serialize)]
struct HandlerList {
    handlers: Vec<Handler>,
    next: Option<String>,
}

#[derive(Serialize)]
struct Tenant {
    name: String,
    /// How many handlers are loaded or known.
    handlers: usize,
    /// Those whose file on disk is not the version in use.
    problems: usize,
    limits: BTreeMap<&'static str, String>,
    weight: u32,
    computing: usize,
    waiting: usize,
    slowed: bool,
    account: Used,
}

#[derive(Serialize)]
struct Handler {
    name: String,
    tenant: String,
    digest: String,
    component: String,
    problem: Option<String>,
    runtime: Option<String>,
    limits: BTreeMap<&'static str, String>,
    /// Names, and whom HTTP may be spoken to with; never a value.
    grants: Vec<String>,
    account: Used,
}

/// An account, as it is shown.
#[derive(Serialize)]
struct Used {
    calls: u64,
    acks: u64,
    defers: u64,
    rejects: u64,
    faults: BTreeMap<&'static str, u64>,
    limit_trips: BTreeMap<&'static str, u64>,
    dropped: u64,
    cpu_seconds: f64,
    waited_seconds: f64,
    memory_peak_bytes: u64,
    memory_lately_bytes: u64,
    host_calls: u64,
    bytes_in: u64,
    bytes_out: u64,
    log_lines: u64,
    log_bytes: u64,
    log_dropped: u64,
    instances: u64,
    instances_peak: u64,
}

impl From<Account> for Used {
    fn from(account: Account) -> Self {
        let faults = account.fault_kinds().map(|(kind, faults)| (kind.label(), faults)).collect();
        let limit_trips = account.limit_trips().collect();
        Self {
            calls: account.calls,
            acks: account.acks,
            defers: account.defers,
            rejects: account.rejects,
            faults,
            limit_trips,
            dropped: account.dropped,
            cpu_seconds: account.cpu.as_secs_f64(),
            waited_seconds: account.waited.as_secs_f64(),
            memory_peak_bytes: account.memory_peak,
            memory_lately_bytes: account.memory_peak_lately,
            host_calls: account.host_calls,
            bytes_in: account.bytes_in,
            bytes_out: account.bytes_out,
            log_lines: account.log_lines,
            log_bytes: account.log_bytes,
            log_dropped: account.log_dropped,
            instances: account.instances,
            instances_peak: account.instances_peak,
        }
    }
}

/// `GET /v1/tenants?limit=N&after=NAME`.
pub(crate) async fn tenants(State(ports): State<AdminPorts>, page: Asked<Page>) -> Response {
    let page = match page {
        Ok(Query(page)) => page,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.body_text()),
    };
    let all = ports.tenants.list();
    let listed = all.into_iter().filter(|tenant| tenant.name > page.after);
    let (shown, next) = cut(listed, page.limit, |tenant| &tenant.name);
    let problems = problems(&ports.handlers.list());
    let tenants = shown.into_iter().map(|tenant| shown_tenant(&ports, tenant, &problems)).collect();
    now(StatusCode::OK, TenantList { tenants, next })
}

/// `GET /v1/tenants/{tenant}`.
pub(crate) async fn tenant(State(ports): State<AdminPorts>, Path(name): Path<String>) -> Response {
    let mut all = ports.tenants.list().into_iter();
    let Some(tenant) = all.find(|tenant| tenant.name == name) else {
        return refuse(StatusCode::NOT_FOUND, format!("there is no tenant {name:?}"));
    };
    let problems = problems(&ports.handlers.list());
    now(StatusCode::OK, shown_tenant(&ports, tenant, &problems))
}

/// `GET /v1/handlers?tenant=NAME&limit=N&after=NAME`.
pub(crate) async fn handlers(
    State(ports): State<AdminPorts>,
    page: Asked<HandlersPage>,
) -> Response {
    let page = match page {
        Ok(Query(page)) => page,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.body_text()),
    };
    let wanted = |handler: &HandlerStatus| {
        let ours = page.tenant.as_deref().is_none_or(|tenant| tenant == tenant_of(&handler.name));
        ours && handler.name > page.after
    };
    let listed = ports.handlers.list().into_iter().filter(wanted);
    let (shown, next) = cut(listed, page.limit, |handler| &handler.name);
    let tenants = ports.tenants.list();
    let accounts = accounts(&tenants);
    let handlers = shown.into_iter().map(|one| shown_handler(&ports, one, &accounts)).collect();
    now(StatusCode::OK, HandlerList { handlers, next })
}

/// `GET /v1/handlers/{tenant}/{handler}`.
pub(crate) async fn handler(
    State(ports): State<AdminPorts>,
    Path((tenant, short)): Path<(String, String)>,
) -> Response {
    let name = format!("{tenant}/{short}");
    let Some(handler) = ports.handlers.list().into_iter().find(|one| one.name == name) else {
        return refuse(StatusCode::NOT_FOUND, format!("there is no handler {name:?}"));
    };
    let tenants = ports.tenants.list();
    let accounts = accounts(&tenants);
    now(StatusCode::OK, shown_handler(&ports, handler, &accounts))
}

/// A page of a list that is in order, and the name after which the next one begins.
fn cut<T>(
    mut listed: impl Iterator<Item = T>,
    limit: Option<usize>,
    name: impl Fn(&T) -> &String,
) -> (Vec<T>, Option<String>) {
    let limit = limit.unwrap_or(DEFAULT_PAGE).clamp(1, LARGEST_PAGE);
    let shown: Vec<T> = listed.by_ref().take(limit).collect();
    let more = listed.next().is_some();
    let next = shown.last().filter(|_| more).map(|last| name(last).clone());
    (shown, next)
}

fn tenant_of(handler: &str) -> &str {
    handler.split_once('/').map_or("", |(tenant, _)| tenant)
}

/// By tenant, how many handlers have one.
fn problems(handlers: &[HandlerStatus]) -> BTreeMap<String, usize> {
    let mut problems = BTreeMap::new();
    for handler in handlers.iter().filter(|handler| handler.problem.is_some()) {
        *problems.entry(tenant_of(&handler.name).to_owned()).or_default() += 1;
    }
    problems
}

/// By full name.
fn accounts(tenants: &[TenantStatus]) -> BTreeMap<&str, Account> {
    let handlers = tenants.iter().flat_map(|tenant| &tenant.handlers);
    handlers.map(|handler| (handler.name.as_str(), handler.account)).collect()
}

fn limits(limits: Vec<Limit>) -> BTreeMap<&'static str, String> {
    limits.into_iter().collect()
}

fn shown_tenant(
    ports: &AdminPorts,
    tenant: TenantStatus,
    problems: &BTreeMap<String, usize>,
) -> Tenant {
    let terms = ports.terms.of_tenant(&tenant.name);
    Tenant {
        handlers: tenant.handlers.len(),
        problems: problems.get(&tenant.name).copied().unwrap_or_default(),
        limits: terms.map(|terms| limits(terms.limits)).unwrap_or_default(),
        weight: tenant.weight,
        computing: tenant.computing,
        waiting: tenant.waiting,
        slowed: tenant.slowed,
        account: tenant.account.into(),
        name: tenant.name,
    }
}

fn shown_handler(
    ports: &AdminPorts,
    handler: HandlerStatus,
    accounts: &BTreeMap<&str, Account>,
) -> Handler {
    let HandlerStatus { name, digest, component, problem } = handler;
    let account = accounts.get(name.as_str()).copied().unwrap_or_default();
    let (mut runtime, mut granted, mut of_calls) = (None, Vec::new(), Vec::new());
    if let Some(terms) = ports.terms.of_handler(&name) {
        (runtime, granted, of_calls) = (Some(terms.runtime), terms.grants, terms.limits);
    }
    Handler {
        tenant: tenant_of(&name).to_owned(),
        name,
        digest,
        component,
        problem,
        runtime,
        limits: limits(of_calls),
        grants: granted,
        account: account.into(),
    }
}
