//! What is in force for tenants and handlers, for people and the admin side: limits, and the names of what is granted.
//! No value that is granted is ever part of it.

use std::fmt;

/// A limit by its key below `limits`, with its value as the configuration spells it.
pub type Limit = (&'static str, String);

/// The width of the column before a value.
const COLUMN: usize = 22;

/// What is in force for one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantTerms {
    /// Its name.
    pub name: String,
    /// How many handlers the configuration gives it.
    pub handlers: usize,
    /// What all its handlers together may use.
    pub limits: Vec<Limit>,
}

/// What is in force for one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerTerms {
    /// `tenant/name`.
    pub name: String,
    /// The component's file.
    pub component: String,
    /// Its engine profile, and when an instance is used again.
    pub runtime: String,
    /// What one call may use.
    pub limits: Vec<Limit>,
    /// What it gets beyond its message, each by its key below `grants`: `logging`, `config.currency`,
    /// `secrets.token`, `http GET https://api.example.com`.
    pub grants: Vec<String>,
}

/// What the configuration in force says.
pub trait Terms: Send + Sync {
    /// Of a tenant; none where it names no such tenant.
    fn of_tenant(&self, name: &str) -> Option<TenantTerms>;

    /// Of a handler by its full name; none where it names no such handler.
    fn of_handler(&self, name: &str) -> Option<HandlerTerms>;
}

fn write_row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "  {name:<COLUMN$}{value}")
}

fn write_limits(f: &mut fmt::Formatter<'_>, limits: &[Limit]) -> fmt::Result {
    limits.iter().try_for_each(|(name, value)| write_row(f, &format!("limits.{name}"), value))
}

impl fmt::Display for TenantTerms {
    /// The name, then a line for each limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tenant {}", self.name)?;
        write_row(f, "handlers", self.handlers)?;
        write_limits(f, &self.limits)
    }
}

impl fmt::Display for HandlerTerms {
    /// The name, then a line for each limit and each grant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "handler {}", self.name)?;
        write_row(f, "component", &self.component)?;
        write_row(f, "runtime", &self.runtime)?;
        write_limits(f, &self.limits)?;
        if self.grants.is_empty() {
            return write_row(f, "grants", "none");
        }
        self.grants.iter().try_for_each(|grant| write_row(f, "grants", grant))
    }
}
