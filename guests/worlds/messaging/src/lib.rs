//! A handler that knows nothing of Pumphouse: it was built for `wasi:messaging`.

#![cfg(target_family = "wasm")]

#[allow(clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/worlds/messaging",
        world: "messaging-core",
        generate_all,
        pub_export_macro: true,
    });
}

use bindings::exports::wasi::messaging::incoming_handler::Guest;
use bindings::wasi::messaging::types::{Client, Error, Message};

struct Component;

bindings::export!(Component with_types_in bindings);

impl Guest for Component {
    fn handle(message: Message) -> Result<(), Error> {
        let body = String::from_utf8(message.data()).map_err(|e| Error::Other(e.to_string()))?;
        match body.as_str() {
            "ack" => Ok(()),
            "timeout" => Err(Error::Timeout),
            "connection" => Err(Error::Connection("the database is away".into())),
            "denied" => Err(Error::PermissionDenied("no right".into())),
            "connect" => Client::connect("orders").map(drop),
            "panic" => panic!("as told"),
            "hoard" => hoard(),
            "edit" => edit(&message),
            // What was given, for the test to read.
            _ => Err(Error::Other(format!(
                "topic {:?}, type {:?}, metadata {:?}",
                message.topic(),
                message.content_type(),
                message.metadata()
            ))),
        }
    }
}

/// Makes messages until the host says no.
fn hoard() -> Result<(), Error> {
    let body = vec![0; 256 * 1024];
    let held: Vec<Message> = (0..1_000).map(|_| Message::new(&body)).collect();
    Err(Error::Other(format!("held {}", held.len())))
}

/// What is set is read again, and a message that was dropped is not held any more.
fn edit(message: &Message) -> Result<(), Error> {
    for _ in 0..200 {
        drop(Message::new(&vec![0; 256 * 1024]));
    }
    message.set_data(b"new");
    message.set_content_type("text/plain");
    message.set_metadata(&[("a".into(), "1".into())]);
    message.add_metadata("b", "2");
    message.add_metadata("a", "3");
    message.remove_metadata("b");
    let same = message.data() == b"new"
        && message.content_type().as_deref() == Some("text/plain")
        && message.metadata() == Some(vec![("a".into(), "3".into())]);
    if same { Ok(()) } else { Err(Error::Other("it was not kept".into())) }
}
