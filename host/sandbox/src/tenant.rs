//! The tenants of a sandbox: what each may use, and what it uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::settings::TenantLimits;

/// One tenant. Its handlers share it.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    pub(crate) limits: ArcSwap<TenantLimits>,
}

/// All tenants that were ever named, or have handlers.
#[derive(Debug, Default)]
pub(crate) struct Tenants(Mutex<BTreeMap<Arc<str>, Arc<Tenant>>>);

impl Tenants {
    /// The tenant of a handler's full name, `tenant/name`.
    pub(crate) fn of_handler(&self, handler: &str) -> Arc<Tenant> {
        self.get(handler.split_once('/').map_or("", |(tenant, _)| tenant))
    }

    /// The tenant of that name, with the default limits where it is new.
    pub(crate) fn get(&self, name: &str) -> Arc<Tenant> {
        let mut tenants = self.tenants();
        if let Some(tenant) = tenants.get(name) {
            return tenant.clone();
        }
        let name: Arc<str> = name.into();
        let limits = ArcSwap::from_pointee(TenantLimits::default());
        let tenant = Arc::new(Tenant { name: name.clone(), limits });
        tenants.insert(name, tenant.clone());
        tenant
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Tenant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
