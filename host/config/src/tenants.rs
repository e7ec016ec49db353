//! `[tenants]`: tenants, their handlers, limits and grants.

use std::collections::BTreeMap;
use std::path::Path;

use crate::section::Section;
use crate::types::{Grants, HandlerConfig, Limits, Secret, Setting, Tenant};

/// Tenants by name and handlers by full name. A handler with an error is there all the same, so that what
/// refers to it is not reported too.
pub(crate) fn read(
    section: &Section<'_>,
    directory: &Path,
) -> (BTreeMap<String, Tenant>, BTreeMap<String, HandlerConfig>) {
    let mut tenants = BTreeMap::new();
    let mut handlers = BTreeMap::new();
    for (name, tenant) in section.each() {
        let limits = own_limits(&tenant.below("limits"));
        for (short, handler) in tenant.below("handlers").each() {
            let config = read_handler(&handler, (&name, &short), limits, directory);
            handlers.insert(config.name.clone(), config);
        }
        tenants.insert(name.clone(), Tenant { name, limits });
    }
    (tenants, handlers)
}

fn own_limits(section: &Section<'_>) -> Limits {
    Limits {
        memory_bytes: section.size("memory").unwrap_or_default(),
        deadline: section.duration("deadline").unwrap_or_default(),
        concurrency: section.count("concurrency"),
        log_bytes: section.size("log").unwrap_or_default(),
        log_lines: section.count("log_lines").unwrap_or_default(),
        result_bytes: section.size("result").unwrap_or_default(),
        table_elements: section.count("table").unwrap_or_default(),
    }
}

fn limits_over(section: &Section<'_>, tenant: Limits) -> Limits {
    Limits {
        memory_bytes: section.size("memory").unwrap_or(tenant.memory_bytes),
        deadline: section.duration("deadline").unwrap_or(tenant.deadline),
        concurrency: section.count("concurrency"),
        log_bytes: section.size("log").unwrap_or(tenant.log_bytes),
        log_lines: section.count("log_lines").unwrap_or(tenant.log_lines),
        result_bytes: section.size("result").unwrap_or(tenant.result_bytes),
        table_elements: section.count("table").unwrap_or(tenant.table_elements),
    }
}

fn read_handler(
    section: &Section<'_>,
    (tenant, short): (&str, &str),
    limits: Limits,
    directory: &Path,
) -> HandlerConfig {
    HandlerConfig {
        name: format!("{tenant}/{short}"),
        tenant: tenant.to_owned(),
        component: directory.join(section.path_value("component").unwrap_or_default()),
        limits: limits_over(&section.below("limits"), limits),
        grants: read_grants(&section.below("grants"), directory),
    }
}

fn read_grants(section: &Section<'_>, directory: &Path) -> Grants {
    let settings = section.below("config").settings().into_iter();
    let config = settings.map(|(name, one)| (name, one.relative_to(directory))).collect();
    Grants { logging: section.flag("logging"), config }
}

impl Setting {
    pub(crate) fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::Secret(secret) => Self::Secret(secret.relative_to(directory)),
            Self::Text(text) => Self::Text(text),
        }
    }
}

impl Secret {
    pub(crate) fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(directory.join(path)),
            Self::Env(name) => Self::Env(name),
        }
    }
}
