//! From a host's name to its addresses.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Semaphore, oneshot};
use wasmtime_wasi_http::Error;

/// Names that are looked up at once, over all handlers, and of one tenant.
const MOST: usize = 32;
const MOST_OF_A_TENANT: usize = 8;

/// Addresses of one name that are looked at.
const MOST_ADDRESSES: usize = 16;

const THREAD: &str = "pumphouse-lookup";
const STACK: usize = 256 * 1024;

/// Who looks up names. The system's own resolver cannot be interrupted: each lookup has a thread, which gives its
/// place back when it is really done, so that slow names of one tenant take neither threads nor places of others.
#[derive(Debug)]
pub(crate) struct Lookups {
    all: Arc<Semaphore>,
    tenants: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), tenants: Mutex::default() }
    }
}

impl Lookups {
    pub(crate) fn of_tenant(&self, tenant: &str) -> Resolver {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let own = match tenants.get(tenant) {
            Some(own) => own.clone(),
            None => {
                let own = Arc::new(Semaphore::new(MOST_OF_A_TENANT));
                tenants.insert(tenant.to_owned(), own.clone());
                own
            }
        };
        Resolver { all: self.all.clone(), own }
    }
}

/// The lookups of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

impl Resolver {
    /// The addresses of a host; of one that is an address, that one. At least one. Waits as long as it takes: the
    /// caller bounds it. Dropping this leaves the lookup to end by itself.
    pub(crate) async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let own = self.own.clone().acquire_owned().await.map_err(|_| not_found("shut down"))?;
        let all = self.all.clone().acquire_owned().await.map_err(|_| not_found("shut down"))?;
        let (sender, found) = oneshot::channel();
        let host = host.to_owned();
        let lookup = move || {
            let addresses = look_up(&host);
            drop((own, all));
            // Nobody waits any more where the call has ended.
            let _ = sender.send(addresses);
        };
        let thread = thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK);
        thread.spawn(lookup).map_err(|_| not_found("no thread"))?;
        match found.await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            _ => Err(not_found("name not found")),
        }
    }
}

fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let addresses = (host, 0).to_socket_addrs()?;
    Ok(addresses.map(|address| address.ip()).take(MOST_ADDRESSES).collect())
}

fn not_found(why: &str) -> Error {
    Error::DnsError { rcode: Some(why.to_owned()), info_code: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_has_addresses_and_an_address_is_its_own() {
        let resolver = Lookups::default().of_tenant("acme");
        let local = resolver.resolve("localhost").await.unwrap();
        assert!(local.iter().all(IpAddr::is_loopback) && !local.is_empty(), "{local:?}");
        let literal = resolver.resolve("2001:db8::1").await.unwrap();
        assert_eq!(literal, ["2001:db8::1".parse::<IpAddr>().unwrap()]);
        let missing = resolver.resolve("no-such-name.invalid").await;
        assert!(matches!(missing, Err(Error::DnsError { .. })), "{missing:?}");
    }

    #[tokio::test]
    async fn a_tenants_places_are_its_own() {
        let lookups = Lookups::default();
        let (greedy, other) = (lookups.of_tenant("greedy"), lookups.of_tenant("other"));
        let _held = greedy.own.clone().acquire_many_owned(8).await.unwrap();
        assert!(lookups.of_tenant("greedy").own.try_acquire().is_err());
        assert!(other.resolve("localhost").await.is_ok());
    }
}
