//! Outgoing HTTP: what a handler's grant allows, checked by the host at every request.
//!
//! A guest speaks `wasi:http`. Each of its requests is compared with the allow-list (`target`), its host is looked up
//! here (`lookup`), every address that comes of it is judged (`address`), and the connection goes to an address that
//! was judged (`connect`): there is no second lookup in between. Redirects are not followed: a guest that follows
//! one makes a request of its own. Bodies, times and numbers are bounded (`body`), and all ends with the call.

mod address;
mod body;
mod connect;
mod errors;
mod exchange;
mod grant;
mod hooks;
mod lookup;
mod target;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;

pub use grant::{HttpGrant, HttpHost, HttpHostError, HttpRule, HttpScheme};
pub(crate) use hooks::{HttpCall, add_to_linker};

/// What all handlers that may call out share.
#[derive(Debug)]
pub(crate) struct Outside {
    lookups: lookup::Lookups,
    trust: Vec<PathBuf>,
    /// Made when the first handler needs it: reading the machine's certificates takes milliseconds.
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Outside {
    /// Trusts the certificates in these files beside the machine's own.
    pub(crate) fn new(trust: Vec<PathBuf>) -> Self {
        Self { lookups: lookup::Lookups::default(), trust, tls: OnceLock::new() }
    }

    /// What one version of a handler reaches. May read files.
    ///
    /// # Errors
    /// No certificate authority is trusted, and a rule asks for TLS.
    pub(crate) fn reach(&self, handler: &str, grant: &HttpGrant) -> Result<Reach, String> {
        let secure = grant.rules.iter().any(|rule| rule.scheme == HttpScheme::Https);
        let tls = secure.then(|| self.tls()).transpose()?;
        let tenant = handler.split_once('/').map_or("", |(tenant, _)| tenant);
        let resolver = self.lookups.of_tenant(tenant);
        Ok(Reach { handler: handler.into(), grant: grant.clone(), resolver, tls })
    }

    /// A failure is not kept: the next deployment finds what was missing.
    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = self.tls.get() {
            return Ok(config.clone());
        }
        let config = Arc::new(connect::trusting(&self.trust)?);
        Ok(self.tls.get_or_init(|| config).clone())
    }
}

/// What one version of a handler reaches.
#[derive(Debug)]
pub(crate) struct Reach {
    handler: Arc<str>,
    grant: HttpGrant,
    resolver: lookup::Resolver,
    tls: Option<Arc<ClientConfig>>,
}
