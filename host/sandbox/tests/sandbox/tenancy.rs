//! Tenants of a sandbox that a test has for itself.

use std::sync::Arc;

use pumphouse_contract::ports::TenantStatus;
use pumphouse_sandbox::{HandlerSpec, Limits, LoadedHandler, Sandbox, SandboxSettings};

use crate::common::{self, guest};

/// A sandbox with two threads, whatever the machine has.
pub(crate) fn two_threads(pool_slots: usize) -> Sandbox {
    let settings = SandboxSettings { guest_threads: Some(2), pool_slots, ..common::settings() };
    Sandbox::new(settings).expect("a sandbox")
}

/// A handler of some tenant.
pub(crate) async fn load(
    sandbox: &Sandbox,
    name: &str,
    file: &str,
    limits: Limits,
) -> Arc<LoadedHandler> {
    let spec = HandlerSpec { limits, ..common::spec("", &guest(file)) };
    sandbox.load(HandlerSpec { name: name.into(), ..spec }).await.expect("a handler")
}

pub(crate) fn tenant(sandbox: &Sandbox, name: &str) -> TenantStatus {
    let mut tenants = sandbox.tenants().into_iter();
    tenants.find(|tenant| tenant.name == name).expect("a tenant")
}
