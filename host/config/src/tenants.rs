//! `[tenants]`: tenants, their handlers, limits and grants.

use std::collections::BTreeMap;
use std::path::Path;

use crate::section::Section;
use crate::tenancy::{Grants, HandlerConfig, HttpGrant, HttpLimits, Limits, Reuse, Share, Tenant};
use crate::types::{Secret, Setting};
use crate::values;
use crate::words::{HttpScheme, Runtime};

/// Tenants by name and handlers by full name. A handler with an error is there all the same, so that what
/// refers to it is not reported too.
pub(crate) fn read(
    section: &Section<'_>,
    directory: &Path,
) -> (BTreeMap<String, Tenant>, BTreeMap<String, HandlerConfig>) {
    let mut tenants = BTreeMap::new();
    let mut handlers = BTreeMap::new();
    for (name, tenant) in section.each() {
        let section = tenant.below("limits");
        let limits = own_limits(&section);
        for (short, handler) in tenant.below("handlers").each() {
            let config = read_handler(&handler, (&name, &short), limits, directory);
            handlers.insert(config.name.clone(), config);
        }
        tenants.insert(name.clone(), Tenant { name, limits, share: share(&section) });
    }
    (tenants, handlers)
}

fn share(section: &Section<'_>) -> Share {
    Share {
        weight: section.count("weight").unwrap_or_default(),
        runnable: section.count("runnable").unwrap_or_default(),
        instances: section.count("instances"),
        log_bytes_per_second: section.size("log_rate"),
        log_lines_per_second: section.count("log_lines_rate"),
        messages_per_second: section.count("messages_rate"),
        component_bytes: section.size("component"),
        handlers: section.count("handlers"),
    }
}

fn own_limits(section: &Section<'_>) -> Limits {
    let http = section.below("http");
    Limits {
        memory_bytes: section.size("memory").unwrap_or_default(),
        cpu: section.duration("cpu"),
        deadline: section.duration("deadline").unwrap_or_default(),
        concurrency: section.count("concurrency"),
        log_bytes: section.size("log").unwrap_or_default(),
        log_lines: section.count("log_lines").unwrap_or_default(),
        result_bytes: section.size("result").unwrap_or_default(),
        table_elements: section.count("table").unwrap_or_default(),
        http: HttpLimits {
            time: http.duration("time").unwrap_or_default(),
            request_bytes: http.size("request").unwrap_or_default(),
            response_bytes: http.size("response").unwrap_or_default(),
            calls: http.count("calls").unwrap_or_default(),
        },
    }
}

fn limits_over(section: &Section<'_>, tenant: Limits) -> Limits {
    let http = section.below("http");
    Limits {
        memory_bytes: section.size("memory").unwrap_or(tenant.memory_bytes),
        cpu: section.duration("cpu").or(tenant.cpu),
        deadline: section.duration("deadline").unwrap_or(tenant.deadline),
        concurrency: section.count("concurrency"),
        log_bytes: section.size("log").unwrap_or(tenant.log_bytes),
        log_lines: section.count("log_lines").unwrap_or(tenant.log_lines),
        result_bytes: section.size("result").unwrap_or(tenant.result_bytes),
        table_elements: section.count("table").unwrap_or(tenant.table_elements),
        http: HttpLimits {
            time: http.duration("time").unwrap_or(tenant.http.time),
            request_bytes: http.size("request").unwrap_or(tenant.http.request_bytes),
            response_bytes: http.size("response").unwrap_or(tenant.http.response_bytes),
            calls: http.count("calls").unwrap_or(tenant.http.calls),
        },
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
        runtime: section.word("runtime").unwrap_or(Runtime::Auto),
        instances: reuse(&section.below("instances")),
    }
}

fn reuse(section: &Section<'_>) -> Reuse {
    Reuse {
        reuse: section.read("reuse", values::flag),
        messages: section.count("messages"),
        age: section.duration("age"),
        idle: section.count("idle"),
    }
}

fn read_grants(section: &Section<'_>, directory: &Path) -> Grants {
    let settings = section.below("config").named(values::setting).into_iter();
    let secrets = section.below("secrets").named(values::secret).into_iter();
    Grants {
        logging: section.flag("logging"),
        config: settings.map(|(name, one)| (name, one.relative_to(directory))).collect(),
        secrets: secrets.map(|(name, one)| (name, one.relative_to(directory))).collect(),
        http: section.items("http").iter().map(http).collect(),
    }
}

/// One entry of `grants.http`. One with an error is there all the same, so that those behind it keep their places.
fn http(section: &Section<'_>) -> HttpGrant {
    HttpGrant {
        host: section.read("host", values::http_host).unwrap_or_default(),
        port: section.count("port").and_then(|port| u16::try_from(port).ok()),
        scheme: section.word("scheme").unwrap_or(HttpScheme::Https),
        methods: section.read("methods", values::methods).unwrap_or_default(),
        private: section.flag("private"),
    }
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
