//! From what the configuration grants to what the sandbox gives.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use pumphouse_config::{HandlerConfig, HttpLimits, Secret, Setting};
use pumphouse_sandbox::{Grants, HttpGrant, HttpHost, HttpRule, HttpScheme, SecretText};

/// What a handler is granted, with the values of its secrets. Reads files: not for the async runtime.
pub(crate) fn of(handler: &HandlerConfig) -> Result<Grants> {
    let grants = &handler.grants;
    Ok(Grants {
        logging: grants.logging,
        config: settings(&grants.config)?,
        config_references: references(&grants.config),
        secrets: secrets(&grants.secrets)?,
        http: http(&grants.http, handler.limits.http)?,
    })
}

/// Without any setting the interface is not granted.
fn settings(settings: &BTreeMap<String, Setting>) -> Result<Option<BTreeMap<String, String>>> {
    let resolve = |(name, setting): (&String, &Setting)| {
        let value = setting.resolve().with_context(|| format!("grants.config.{name}"))?;
        Ok((name.clone(), value))
    };
    let resolved: BTreeMap<String, String> = settings.iter().map(resolve).collect::<Result<_>>()?;
    Ok((!resolved.is_empty()).then_some(resolved))
}

fn references(settings: &BTreeMap<String, Setting>) -> BTreeSet<String> {
    let by_reference = settings.iter().filter(|(_, one)| matches!(one, Setting::Secret(_)));
    by_reference.map(|(name, _)| name.clone()).collect()
}

pub(crate) fn secrets(secrets: &BTreeMap<String, Secret>) -> Result<BTreeMap<String, SecretText>> {
    let resolve = |(name, secret): (&String, &Secret)| {
        let value = secret.resolve().with_context(|| format!("grants.secrets.{name}"))?;
        Ok((name.clone(), SecretText::new(value)))
    };
    secrets.iter().map(resolve).collect()
}

/// Without any host the interface is not granted.
fn http(rules: &[pumphouse_config::HttpGrant], limits: HttpLimits) -> Result<Option<HttpGrant>> {
    if rules.is_empty() {
        return Ok(None);
    }
    Ok(Some(HttpGrant {
        rules: rules.iter().map(rule).collect::<Result<_>>()?,
        timeout: limits.time,
        request_bytes: limits.request_bytes,
        response_bytes: limits.response_bytes,
        concurrency: limits.calls as usize,
    }))
}

fn rule(grant: &pumphouse_config::HttpGrant) -> Result<HttpRule> {
    let scheme = match grant.scheme {
        pumphouse_config::HttpScheme::Https => HttpScheme::Https,
        pumphouse_config::HttpScheme::Http => HttpScheme::Http,
    };
    Ok(HttpRule {
        scheme,
        host: HttpHost::parse(&grant.host).context("grants.http")?,
        port: grant.port.unwrap_or(scheme.port()),
        methods: grant.methods.clone(),
        private: grant.private,
    })
}
