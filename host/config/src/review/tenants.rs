//! Tenants: limits that can't be had, grants that say the same twice.

use crate::diagnostic::Code;
use crate::report::{At, Note, join};
use crate::review::Review;
use crate::tenancy::{HandlerConfig, HttpGrant, Tenant};
use crate::units::{Readable, ReadableSize};
use crate::words::HttpScheme;

pub(crate) fn review(review: &Review<'_>) {
    for tenant in review.config.tenants.values() {
        instances(review, tenant);
        handlers(review, tenant);
        processor_time(review, &tenant_key(&tenant.name), &tenant.limits);
    }
    for handler in review.config.handlers.values() {
        let key = handler_key(handler);
        let own = ["cpu", "deadline"].map(|name| format!("{key}.limits.{name}"));
        if own.iter().any(|name| review.report.has(name)) {
            processor_time(review, &key, &handler.limits);
        }
        reuse(review, handler);
        twice(review, handler);
    }
}

fn tenant_key(name: &str) -> String {
    join("tenants", name)
}

fn handler_key(handler: &HandlerConfig) -> String {
    let handlers = format!("{}.handlers", tenant_key(&handler.tenant));
    join(&handlers, handler.short_name())
}

fn instances(review: &Review<'_>, tenant: &Tenant) {
    let slots = review.config.host.pool_slots;
    let Some(instances) = tenant.share.instances.filter(|instances| *instances > slots) else {
        return;
    };
    let message = format!(
        "limits.instances = {instances} is more than the pool of all tenants has: host.pool_slots = {slots}"
    );
    let note =
        Note::new(Code::Contradiction, message).allowed(format!("integer from 1 to {slots}"));
    let key = format!("{}.limits.instances", tenant_key(&tenant.name));
    review.report.error(&key, At::Value, note);
}

fn handlers(review: &Review<'_>, tenant: &Tenant) {
    let Some(most) = tenant.share.handlers else { return };
    let all = review.config.handlers.values();
    let have = all.filter(|handler| handler.tenant == tenant.name).count();
    if have <= most as usize {
        return;
    }
    let message = format!(
        "tenant `{}` has {have} handlers and limits.handlers = {most}: raise it, or remove some",
        tenant.name
    );
    let key = format!("{}.limits.handlers", tenant_key(&tenant.name));
    review.report.error(&key, At::Value, Note::new(Code::Contradiction, message));
}

/// A limit on processor time above the deadline is never met.
fn processor_time(review: &Review<'_>, key: &str, limits: &crate::tenancy::Limits) {
    let Some(cpu) = limits.cpu.filter(|cpu| *cpu > limits.deadline) else { return };
    let message = format!(
        "limits.cpu = {} can't be used within limits.deadline = {}",
        Readable(cpu),
        Readable(limits.deadline)
    );
    let note = Note::new(Code::Contradiction, message)
        .allowed(format!("duration up to {}", Readable(limits.deadline)));
    let at = |name| format!("{key}.limits.{name}");
    let key = if review.report.has(&at("cpu")) { at("cpu") } else { at("deadline") };
    review.report.error(&key, At::Value, note);
}

fn reuse(review: &Review<'_>, handler: &HandlerConfig) {
    let instances = handler.instances;
    if instances.reuse != Some(false) {
        return;
    }
    let written = [
        ("messages", instances.messages.is_some()),
        ("age", instances.age.is_some()),
        ("idle", instances.idle.is_some()),
    ];
    for (name, _) in written.into_iter().filter(|(_, is)| *is) {
        let message = format!(
            "`instances.{name}` and `instances.reuse = false` exclude each other: each message gets a fresh instance"
        );
        let key = format!("{}.instances.{name}", handler_key(handler));
        review.report.error(&key, At::Value, Note::new(Code::Contradiction, message));
    }
}

fn twice(review: &Review<'_>, handler: &HandlerConfig) {
    let whom = |grant: &HttpGrant| (grant.host.clone(), grant.scheme, port(grant));
    for (index, grant) in handler.grants.http.iter().enumerate() {
        let same = |other: &HttpGrant| whom(other) == whom(grant);
        if grant.host.is_empty() || !handler.grants.http.iter().take(index).any(same) {
            continue;
        }
        let message = format!(
            "{}://{}:{} is granted twice: say all its methods in one entry",
            grant.scheme,
            grant.host,
            port(grant)
        );
        let key = format!("{}.grants.http[{index}]", handler_key(handler));
        review.report.error(&key, At::Value, Note::new(Code::Contradiction, message));
    }
}

fn port(grant: &HttpGrant) -> u16 {
    grant.port.unwrap_or(match grant.scheme {
        HttpScheme::Https => 443,
        HttpScheme::Http => 80,
    })
}

/// Components that their tenant may not have, and a file that is not there.
pub(crate) fn files(review: &Review<'_>) {
    if let Some(path) = review.config.host.http_trust.as_ref().filter(|path| !path.is_file()) {
        let message = format!("there is no file {}", path.display());
        let note = Note::new(Code::MissingFile, message);
        review.report.error("host.http.trust", At::Value, note);
    }
    for handler in review.config.handlers.values() {
        let tenant = review.config.tenants.get(&handler.tenant);
        let Some(most) = tenant.and_then(|tenant| tenant.share.component_bytes) else { continue };
        let Ok(data) = std::fs::metadata(&handler.component) else { continue };
        if !data.is_file() || data.len() <= most {
            continue;
        }
        let message = format!(
            "{} has {} bytes and tenant `{}` has limits.component = {}",
            handler.component.display(),
            data.len(),
            handler.tenant,
            ReadableSize(most)
        );
        let key = format!("{}.component", handler_key(handler));
        review.report.error(&key, At::Value, Note::new(Code::Contradiction, message));
    }
}
