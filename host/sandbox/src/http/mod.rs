//! Outgoing HTTP: what a handler's grant allows, checked by the host at every request.

mod grant;

pub use grant::{HttpGrant, HttpHost, HttpHostError, HttpRule, HttpScheme};
