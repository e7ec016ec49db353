//! From what the configuration says of a handler to what the sandbox loads.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use pumphouse_config::{Config, HandlerConfig, Setting};
use pumphouse_sandbox::{Grants, HandlerSpec, Limits, LoadedHandler, Sandbox, SandboxSettings};

/// The handlers by full name.
pub(crate) type Loaded = BTreeMap<String, Arc<LoadedHandler>>;

pub(crate) fn settings(config: &Config) -> SandboxSettings {
    let defaults = SandboxSettings::default();
    SandboxSettings {
        cache: Some(config.host.state.join("cache")),
        guest_threads: config.host.guest_threads.map(|threads| threads as usize),
        pool_slots: config.host.pool_slots as usize,
        max_memory: config.largest_memory_bytes().max(defaults.max_memory),
        max_table_elements: u64::from(config.largest_table_elements())
            .max(defaults.max_table_elements),
        ..defaults
    }
}

/// Loads these handlers side by side; every one that can't be loaded is named.
pub(crate) async fn load(sandbox: &Sandbox, config: &Config, names: &[String]) -> Result<Loaded> {
    let handlers = names.iter().filter_map(|name| config.handlers.get(name));
    let loads = handlers.map(|handler| async move {
        let spec = spec(handler, config)?;
        let loaded = sandbox.load(spec).await;
        loaded
            .with_context(|| format!("handler {}", handler.name))
            .map(|l| (handler.name.clone(), l))
    });
    let (loaded, failed): (Vec<_>, Vec<_>) =
        join_all(loads).await.into_iter().partition(Result::is_ok);
    let problems: Vec<String> = failed
        .into_iter()
        .filter_map(Result::err)
        .map(|error: anyhow::Error| format!("{error:#}"))
        .collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(loaded.into_iter().filter_map(Result::ok).collect())
}

fn spec(handler: &HandlerConfig, config: &Config) -> Result<HandlerSpec> {
    let limits = handler.limits;
    Ok(HandlerSpec {
        name: handler.name.clone(),
        component: handler.component.clone(),
        limits: Limits {
            memory: limits.memory_bytes,
            table_elements: u64::from(limits.table_elements),
            deadline: limits.deadline,
            log_bytes: limits.log_bytes,
            log_lines: u64::from(limits.log_lines),
            result_bytes: limits.result_bytes,
            concurrency: limits.concurrency.unwrap_or(config.host.pool_slots) as usize,
        },
        grants: Grants {
            logging: handler.grants.logging,
            config: granted(&handler.grants.config)?,
            ..Grants::default()
        },
        watch: true,
    })
}

/// Without any setting the interface is not granted.
fn granted(settings: &BTreeMap<String, Setting>) -> Result<Option<BTreeMap<String, String>>> {
    let resolved: BTreeMap<String, String> = settings
        .iter()
        .map(|(name, setting)| Ok((name.clone(), setting.resolve()?)))
        .collect::<Result<_>>()?;
    Ok((!resolved.is_empty()).then_some(resolved))
}
