//! Between the generated bindings and the SDK's own types. Not part of the public interface: only the
//! `handler!` macro looks in here.

#![allow(missing_docs, unreachable_pub)]

use std::time::{Duration, SystemTime};

use crate::{Reason, log::Level};

#[allow(unsafe_code, clippy::all, clippy::restriction)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "handler",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_handler",
        runtime_path: "::pumphouse_sdk::wit::runtime",
    });
}

/// A world of its own, so that a handler without secrets is what it was.
#[allow(unsafe_code, clippy::all, clippy::restriction)]
mod secrets_bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "pumphouse:secrets/client",
        runtime_path: "::pumphouse_sdk::wit::runtime",
    });
}

pub use bindings::export_handler as export;
pub use bindings::exports::pumphouse::handler::incoming_handler::Guest;
pub use bindings::pumphouse::handler::types::{Message, Outcome};
pub use wit_bindgen::rt as runtime;

use bindings::pumphouse::handler::types::{Rejection, RejectionReason};
use bindings::wasi::{config::store, logging::logging};

impl From<Message> for crate::Message {
    fn from(message: Message) -> Self {
        Self {
            id: message.id,
            source: message.source,
            delivery_count: message.delivery_count,
            headers: message.headers,
            content_type: message.content_type,
            ordering_key: message.ordering_key,
            published_at: message.published_at.and_then(time),
            body: message.body,
        }
    }
}

fn time(millis: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

impl From<crate::Outcome> for Outcome {
    fn from(outcome: crate::Outcome) -> Self {
        match outcome {
            crate::Outcome::Ack => Self::Ack,
            crate::Outcome::Defer(delay) => Self::Defer(delay.map(millis)),
            crate::Outcome::Reject { reason, description } => {
                Self::Reject(Rejection { reason: reason.into(), description })
            }
        }
    }
}

/// Rounded up, so that a message never comes back before the time that was asked for.
fn millis(delay: Duration) -> u64 {
    delay.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX)
}

impl From<Reason> for RejectionReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Unacceptable => Self::Unacceptable,
            Reason::DeliveryError => Self::DeliveryError,
            Reason::None => Self::None,
        }
    }
}

pub(crate) fn log(level: Level, context: &str, text: &str) {
    let level = match level {
        Level::Trace => logging::Level::Trace,
        Level::Debug => logging::Level::Debug,
        Level::Info => logging::Level::Info,
        Level::Warn => logging::Level::Warn,
        Level::Error => logging::Level::Error,
        Level::Critical => logging::Level::Critical,
    };
    logging::log(level, context, text);
}

pub(crate) mod secrets {
    pub(crate) fn get(name: &str) -> Option<String> {
        super::secrets_bindings::pumphouse::secrets::store::get(name)
    }
}

pub(crate) mod config {
    use super::store;
    use crate::config::Error;

    pub(crate) fn get(name: &str) -> Result<Option<String>, Error> {
        store::get(name).map_err(error)
    }

    pub(crate) fn all() -> Result<Vec<(String, String)>, Error> {
        store::get_all().map_err(error)
    }

    fn error(error: store::Error) -> Error {
        match error {
            store::Error::Upstream(text) => Error::Upstream(text),
            store::Error::Io(text) => Error::Io(text),
        }
    }
}
