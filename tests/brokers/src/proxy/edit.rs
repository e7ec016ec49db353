//! Ready-made changes for [`On::rewrite`](super::On::rewrite).

use serde_json::Value;

/// A change of an answer's JSON, given the request's.
pub(super) type Edit = dyn Fn(&Value, &mut Value) + Send + Sync;

/// Every message of a receive comes twice in it, with the same handle.
pub fn twice(_request: &Value, answer: &mut Value) {
    let Some(messages) = messages(answer) else { return };
    *messages = messages.iter().flat_map(|message| [message.clone(), message.clone()]).collect();
}

/// Takes a system attribute such as `ApproximateReceiveCount` from every message of a receive.
pub fn without_attribute(name: &str) -> impl Fn(&Value, &mut Value) + Send + Sync + 'static {
    let name = name.to_owned();
    move |_, answer| {
        for message in messages(answer).into_iter().flatten() {
            if let Some(attributes) = message.get_mut("Attributes").and_then(Value::as_object_mut) {
                attributes.remove(&name);
            }
        }
    }
}

/// Gives every message of a receive a handle that the server does not know.
pub fn stale_handles(_request: &Value, answer: &mut Value) {
    for message in messages(answer).into_iter().flatten() {
        if let Some(Value::String(handle)) = message.get_mut("ReceiptHandle") {
            handle.push_str("-stale");
        }
    }
}

fn messages(answer: &mut Value) -> Option<&mut Vec<Value>> {
    answer.get_mut("Messages")?.as_array_mut()
}
