//! `pumphouse check`: what a configuration means, without touching a broker.

use anyhow::Result;
use pumphouse_config::{Config, Diagnostic, Effective};
use pumphouse_contract::terms::{HandlerTerms, Limit, TenantTerms};
use serde_json::{Value, json};

use crate::args::Check;
use crate::exit::{Exit, say};
use crate::host;

pub(crate) fn check(arguments: &Check) -> Result<Exit> {
    let build = host::build();
    let (found, meant) = match pumphouse_config::load(&arguments.config, &build) {
        Ok(loaded) => (loaded.warnings, Some(Meant::of(&loaded.config, &build))),
        Err(found) => (found, None),
    };
    let exit = if meant.is_some() { Exit::Done } else { Exit::Configuration };
    let meant = meant.unwrap_or_default();
    if arguments.json {
        let findings: Vec<Value> = found.iter().map(diagnostic).collect();
        say(meant.json(findings));
        return Ok(exit);
    }
    if !found.is_empty() {
        say(found.render(host::is_terminal()));
    }
    meant.tenants.iter().for_each(say);
    meant.handlers.iter().for_each(say);
    meant.subscriptions.iter().for_each(say);
    say(format!("{} errors, {} warnings", found.errors(), found.warnings()));
    Ok(exit)
}

/// What a sound configuration means.
#[derive(Default)]
struct Meant {
    tenants: Vec<TenantTerms>,
    handlers: Vec<HandlerTerms>,
    subscriptions: Vec<Effective>,
}

impl Meant {
    fn of(config: &Config, build: &pumphouse_config::Build) -> Self {
        Self {
            tenants: config.tenants.keys().filter_map(|name| config.tenant_terms(name)).collect(),
            handlers: config
                .handlers
                .keys()
                .filter_map(|name| config.handler_terms(name))
                .collect(),
            subscriptions: config.effective(build),
        }
    }

    fn json(&self, findings: Vec<Value>) -> Value {
        let tenants: Vec<Value> = self.tenants.iter().map(tenant).collect();
        let handlers: Vec<Value> = self.handlers.iter().map(handler).collect();
        let subscriptions: Vec<Value> = self.subscriptions.iter().map(subscription).collect();
        json!({
            "findings": findings,
            "tenants": tenants,
            "handlers": handlers,
            "subscriptions": subscriptions,
        })
    }
}

fn tenant(one: &TenantTerms) -> Value {
    json!({ "tenant": one.name, "handlers": one.handlers, "limits": limits(&one.limits) })
}

fn handler(one: &HandlerTerms) -> Value {
    json!({
        "handler": one.name,
        "component": one.component,
        "runtime": one.runtime,
        "limits": limits(&one.limits),
        "grants": one.grants,
    })
}

fn limits(limits: &[Limit]) -> Value {
    Value::Object(limits.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect())
}

fn diagnostic(one: &Diagnostic) -> Value {
    Value::Object(
        one.fields().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect(),
    )
}

fn subscription(one: &Effective) -> Value {
    let mut fields: serde_json::Map<String, Value> =
        one.rows().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    fields.insert("subscription".to_owned(), one.subscription.clone().into());
    let lease = u64::try_from(one.lease.length().as_millis()).unwrap_or(u64::MAX);
    fields.insert("lease_ms".to_owned(), lease.into());
    Value::Object(fields)
}
