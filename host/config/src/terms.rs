//! What is in force for tenants and handlers, as `check` prints it and the admin side shows it.

use pumphouse_contract::terms::{HandlerTerms, Limit, TenantTerms};

use crate::table::LARGEST_COMPONENT;
use crate::tenancy::{HandlerConfig, Share, Tenant};
use crate::types::Config;
use crate::units::{Readable, ReadableSize};
use crate::words::Runtime;

impl Config {
    /// What is in force for a tenant; none where it is not in the file.
    #[must_use]
    pub fn tenant_terms(&self, name: &str) -> Option<TenantTerms> {
        let Tenant { name, limits, share } = self.tenants.get(name)?;
        let prefix = format!("{name}/");
        let own = self.handlers.range(prefix.clone()..);
        let mut rows = shares(share, self.host.pool_slots);
        rows.push(("concurrency", or_none(limits.concurrency)));
        Some(TenantTerms {
            name: name.clone(),
            handlers: own.take_while(|(name, _)| name.starts_with(&prefix)).count(),
            limits: rows,
        })
    }

    /// What is in force for a handler, by its full name; none where it is not in the file.
    #[must_use]
    pub fn handler_terms(&self, name: &str) -> Option<HandlerTerms> {
        let handler = self.handlers.get(name)?;
        Some(HandlerTerms {
            name: handler.name.clone(),
            component: handler.component.display().to_string(),
            runtime: runtime(handler),
            limits: limits(handler),
            grants: grants(handler),
        })
    }
}

fn shares(share: &Share, slots: u32) -> Vec<Limit> {
    let quarter = || format!("{} (a quarter of host.pool_slots)", (slots / 4).max(1));
    let rate = |bytes: u64| format!("{} a second", ReadableSize(bytes));
    let size = |bytes: u64| ReadableSize(bytes).to_string();
    vec![
        ("weight", share.weight.to_string()),
        ("runnable", share.runnable.to_string()),
        ("instances", share.instances.map_or_else(quarter, |most| most.to_string())),
        ("messages_rate", a_second(share.messages_per_second)),
        ("log_rate", share.log_bytes_per_second.map_or_else(none, rate)),
        ("log_lines_rate", a_second(share.log_lines_per_second)),
        ("component", size(share.component_bytes.unwrap_or(LARGEST_COMPONENT))),
        ("handlers", or_none(share.handlers)),
    ]
}

fn none() -> String {
    "none".to_owned()
}

fn or_none(limit: Option<u32>) -> String {
    limit.map_or_else(none, |limit| limit.to_string())
}

fn a_second(limit: Option<u32>) -> String {
    limit.map_or_else(none, |limit| format!("{limit} a second"))
}

/// `heavy, instances used again (after 50 messages, after 30s)`.
fn runtime(handler: &HandlerConfig) -> String {
    let again = "instances used again";
    let fresh = "a fresh instance for each message";
    let instances = handler.instances;
    let bounds: Vec<String> = [
        instances.messages.map(|most| format!("at most {most} messages")),
        instances.age.map(|age| format!("at most {}", Readable(age))),
        instances.idle.map(|most| format!("at most {most} waiting")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let used = match (instances.reuse, handler.runtime) {
        (Some(false), _) => fresh,
        (Some(true), _) => again,
        (None, _) if !bounds.is_empty() => again,
        (None, Runtime::Lean) => fresh,
        (None, Runtime::Heavy) => again,
        (None, Runtime::Auto) => "which the component decides",
    };
    let bounds =
        if bounds.is_empty() { String::new() } else { format!(" ({})", bounds.join(", ")) };
    format!("{}, {used}{bounds}", handler.runtime)
}

fn limits(handler: &HandlerConfig) -> Vec<Limit> {
    let limits = &handler.limits;
    let http = limits.http;
    let mut rows = vec![
        ("memory", ReadableSize(limits.memory_bytes).to_string()),
        ("cpu", limits.cpu.map_or_else(none, |cpu| Readable(cpu).to_string())),
        ("deadline", Readable(limits.deadline).to_string()),
        ("concurrency", or_none(limits.concurrency)),
        ("log", ReadableSize(limits.log_bytes).to_string()),
        ("log_lines", limits.log_lines.to_string()),
        ("result", ReadableSize(limits.result_bytes).to_string()),
        ("table", limits.table_elements.to_string()),
    ];
    if !handler.grants.http.is_empty() {
        rows.extend([
            ("http.time", Readable(http.time).to_string()),
            ("http.request", ReadableSize(http.request_bytes).to_string()),
            ("http.response", ReadableSize(http.response_bytes).to_string()),
            ("http.calls", http.calls.to_string()),
        ]);
    }
    rows
}

/// Names alone: also a setting in plain text may be a secret to its owner.
fn grants(handler: &HandlerConfig) -> Vec<String> {
    let grants = &handler.grants;
    let mut all: Vec<String> = grants.logging.then(|| "logging".to_owned()).into_iter().collect();
    all.extend(grants.config.keys().map(|name| format!("config.{name}")));
    all.extend(grants.secrets.keys().map(|name| format!("secrets.{name}")));
    all.extend(grants.http.iter().map(|grant| format!("http {grant}")));
    all
}
