//! From what the configuration says of tenants and handlers to what the sandbox loads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use futures_util::stream;
use pumphouse_config::{Config, HandlerConfig, Reuse, Share};
use pumphouse_sandbox::{
    CompileWorker, Compiling, HandlerSpec, Instances, Limits, LoadedHandler, Runtime, Sandbox,
    SandboxSettings, TenantLimits,
};

use crate::host::grants;

/// How many handlers are loaded side by side.
const LOADED_AT_ONCE: usize = 64;

/// The handlers by full name.
pub(crate) type Loaded = BTreeMap<String, Arc<LoadedHandler>>;

pub(crate) fn settings(config: &Config) -> SandboxSettings {
    let defaults = SandboxSettings::default();
    SandboxSettings {
        cache: Some(config.host.state.join("cache")),
        compiling: Compiling::Worker(CompileWorker {
            memory: config.host.compile.memory_bytes,
            ..compile_worker().within(config.host.compile.time)
        }),
        resident: config.host.resident_handlers as usize,
        clock_resolution: config.host.clock_resolution,
        http_trust: config.host.http_trust.iter().cloned().collect(),
        guest_threads: config.host.guest_threads.map(|threads| threads as usize),
        pool_slots: config.host.pool_slots as usize,
        heavy_slots: config.host.heavy_slots as usize,
        max_memory: config.largest_memory_bytes().max(defaults.max_memory),
        max_table_elements: u64::from(config.largest_table_elements())
            .max(defaults.max_table_elements),
        ..defaults
    }
}

/// This very binary, started to compile one component.
pub(crate) fn compile_worker() -> CompileWorker {
    CompileWorker::this_program("compile-worker")
}

/// Gives these tenants what the configuration says they may use; one that it no longer names gets the defaults.
pub(crate) fn set_tenants<'a>(
    sandbox: &Sandbox,
    config: &Config,
    names: impl IntoIterator<Item = &'a String>,
) {
    for name in names {
        let share = config.tenants.get(name).map(|tenant| share(tenant.share));
        sandbox.set_tenant(name, share.unwrap_or_default());
    }
}

fn share(share: Share) -> TenantLimits {
    TenantLimits {
        weight: share.weight,
        runnable: share.runnable as usize,
        instances: share.instances.map(|most| most as usize),
        log_bytes_per_second: share.log_bytes_per_second,
        log_lines_per_second: share.log_lines_per_second.map(u64::from),
        component_bytes: share.component_bytes,
        handlers: share.handlers.map(|most| most as usize),
    }
}

/// Loads these handlers side by side; every one that can't be loaded is named.
pub(crate) async fn load(sandbox: &Sandbox, config: &Config, names: &[String]) -> Result<Loaded> {
    let handlers = names.iter().filter_map(|name| config.handlers.get(name));
    let loads = handlers.map(|handler| async move {
        let loaded = load_one(sandbox, handler.clone(), config.host.pool_slots).await;
        loaded
            .map(|loaded| (handler.name.clone(), loaded))
            .with_context(|| format!("handler {}", handler.name))
    });
    let all: Vec<_> = stream::iter(loads).buffered(LOADED_AT_ONCE).collect().await;
    let (loaded, failed): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
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

async fn load_one(
    sandbox: &Sandbox,
    handler: HandlerConfig,
    slots: u32,
) -> Result<Arc<LoadedHandler>> {
    // The values of secrets may stand in files.
    let spec = tokio::task::spawn_blocking(move || spec(&handler, slots)).await??;
    Ok(sandbox.load(spec).await?)
}

fn spec(handler: &HandlerConfig, slots: u32) -> Result<HandlerSpec> {
    let limits = handler.limits;
    Ok(HandlerSpec {
        name: handler.name.clone(),
        component: handler.component.clone(),
        limits: Limits {
            memory: limits.memory_bytes,
            table_elements: u64::from(limits.table_elements),
            cpu: limits.cpu,
            deadline: limits.deadline,
            log_bytes: limits.log_bytes,
            log_lines: u64::from(limits.log_lines),
            result_bytes: limits.result_bytes,
            concurrency: limits.concurrency.unwrap_or(slots) as usize,
        },
        grants: grants::of(handler)?,
        watch: true,
        runtime: match handler.runtime {
            pumphouse_config::Runtime::Auto => Runtime::Auto,
            pumphouse_config::Runtime::Lean => Runtime::Lean,
            pumphouse_config::Runtime::Heavy => Runtime::Heavy,
        },
        instances: instances(handler.instances),
    })
}

/// None where nothing is said: the runtime knows. A bound alone says that instances are used again.
fn instances(said: Reuse) -> Option<Instances> {
    let bounds = said.messages.is_some() || said.age.is_some() || said.idle.is_some();
    match said.reuse {
        Some(false) => Some(Instances::Fresh),
        None if !bounds => None,
        Some(true) | None => Some(reused(said)),
    }
}

fn reused(said: Reuse) -> Instances {
    let (messages, age, idle) = match Instances::REUSED {
        Instances::Reused { messages, age, idle } => (messages, age, idle),
        Instances::Fresh => (1, Duration::ZERO, 1),
    };
    Instances::Reused {
        messages: said.messages.unwrap_or(messages),
        age: said.age.unwrap_or(age),
        idle: said.idle.map_or(idle, |most| most as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not said is as the runtime has it; a bound alone is enough to say that instances are used again.
    #[test]
    fn a_policy_is_what_is_said_over_the_runtimes_own() {
        let said = Reuse::default();
        assert_eq!(instances(said), None);
        assert_eq!(instances(Reuse { reuse: Some(true), ..said }), Some(Instances::REUSED));
        assert_eq!(instances(Reuse { reuse: Some(false), ..said }), Some(Instances::Fresh));
        let one = Reuse { messages: Some(7), ..said };
        let Some(Instances::Reused { messages, age, .. }) = instances(one) else {
            panic!("{:?}", instances(one))
        };
        assert_eq!((messages, age), (7, Duration::from_secs(60)));
    }
}
