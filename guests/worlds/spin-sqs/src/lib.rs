//! A handler that knows nothing of Pumphouse: it was built for the SQS trigger of Spin.

#![cfg(target_family = "wasm")]

#[allow(clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/worlds/spin-sqs",
        world: "spin-sqs",
        generate_all,
        pub_export_macro: true,
    });
}

use bindings::fermyon::spin_sqs::sqs_types::MessageAttributeValue;
use bindings::{Error, Guest, Message, MessageAction};

struct Component;

bindings::export!(Component with_types_in bindings);

impl Guest for Component {
    fn handle_queue_message(message: Message) -> Result<MessageAction, Error> {
        match message.body.as_deref() {
            Some("delete") => Ok(MessageAction::Delete),
            Some("leave") => Ok(MessageAction::Leave),
            Some("panic") => panic!("as told"),
            _ => Err(Error::Other(shown(&message))),
        }
    }
}

/// What was given, for the test to read.
fn shown(message: &Message) -> String {
    let attributes = message.message_attributes.iter().map(|attribute| {
        let value = match &attribute.value {
            MessageAttributeValue::Str(text) => text.clone(),
            MessageAttributeValue::Binary(bytes) => format!("{bytes:?}"),
        };
        format!("{}={value}", attribute.name)
    });
    format!("{:?} {}", message.id, attributes.collect::<Vec<_>>().join(" "))
}
