//! The trace context as Google's clients write it.

/// What Google's clients put before the names of W3C trace context.
const PREFIX: &str = "googclient_";

const TRACEPARENT: &str = pumphouse_contract::trace::TRACEPARENT;
const TRACESTATE: &str = "tracestate";

use std::collections::HashMap;

/// Gives a context of Google's clients its usual names, where the message has no other.
pub(crate) fn rename(attributes: &mut HashMap<String, String>) {
    if attributes.contains_key(TRACEPARENT) {
        return;
    }
    let Some(parent) = attributes.remove(&format!("{PREFIX}{TRACEPARENT}")) else { return };
    attributes.insert(TRACEPARENT.to_owned(), parent);
    if let Some(state) = attributes.remove(&format!("{PREFIX}{TRACESTATE}")) {
        attributes.insert(TRACESTATE.to_owned(), state);
    }
}
