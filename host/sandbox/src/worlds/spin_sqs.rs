//! Components that were built for the SQS trigger of Spin.

use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{HeaderValue, Outcome, Reason, Rejection};
use wasmtime::Store;

use crate::guest::Guest;

pub(crate) use bindings::fermyon::spin_sqs::sqs_types as types;
pub(crate) use bindings::{SpinSqs, SpinSqsPre};

#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/worlds/spin-sqs",
        world: "spin-sqs",
        imports: { default: trappable },
        exports: { default: async },
    });
}

impl types::Host for Guest {}

/// The guest's answer to one message. A body that is not text can't be given to it, and the interface would show it
/// none at all: such a message is rejected before a guest takes it for empty and deletes it.
pub(crate) async fn call(
    instance: &SpinSqs,
    store: &mut Store<Guest>,
    invocation: &Invocation,
) -> wasmtime::Result<Outcome> {
    let Ok(body) = str::from_utf8(&invocation.message.body) else { return Ok(not_text()) };
    let message = types::Message {
        id: Some(invocation.message.id.clone()),
        message_attributes: attributes(invocation),
        body: Some(body.to_owned()),
    };
    let answer = instance.call_handle_queue_message(&mut *store, &message).await?;
    Ok(match answer {
        Ok(types::MessageAction::Delete) => Outcome::Ack,
        Ok(types::MessageAction::Leave) => Outcome::Defer(None),
        Err(types::Error::Other(text)) => super::failed(store.data(), &text),
    })
}

fn not_text() -> Outcome {
    Outcome::Reject(Rejection {
        reason: Reason::Unacceptable,
        description: "the body is not UTF-8, and the handler's interface takes text alone"
            .to_owned(),
    })
}

/// The queue's own attributes as the trigger names them, then the sender's.
fn attributes(invocation: &Invocation) -> Vec<types::MessageAttribute> {
    let message = &*invocation.message;
    let queues = [
        ("ApproximateReceiveCount", Some(u64::from(invocation.count.0) + 1)),
        ("SentTimestamp", message.published_at.map(|time| time.0)),
    ];
    let queues = queues.into_iter().filter_map(|(name, value)| Some((name, value?.to_string())));
    let group = message.ordering_key.clone().map(|key| ("MessageGroupId", key));
    let queues = queues
        .chain(group)
        .map(|(name, text)| (name.to_owned(), types::MessageAttributeValue::Str(text)));
    let senders = message.headers.iter().map(|(name, value)| (name.to_owned(), attribute(value)));
    let all = queues.chain(senders);
    all.map(|(name, value)| types::MessageAttribute { name, data_type: None, value }).collect()
}

fn attribute(value: &HeaderValue) -> types::MessageAttributeValue {
    match value {
        HeaderValue::Binary(bytes) => types::MessageAttributeValue::Binary(bytes.to_vec()),
        HeaderValue::Text(text) | HeaderValue::Number(text) => {
            types::MessageAttributeValue::Str(text.to_string())
        }
    }
}
