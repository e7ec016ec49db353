//! Components that export the handler of `wasi:messaging`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{HeaderValue, Outcome};
use wasmtime::Store;
use wasmtime::component::Resource;

use crate::guest::Guest;

pub(crate) use bindings::wasi::messaging::types;
pub(crate) use bindings::{Served, ServedPre};

#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/worlds/messaging",
        world: "served",
        with: {
            "wasi:messaging/types.message": super::Letter,
            "wasi:messaging/types.client": super::Client,
        },
        imports: { default: trappable },
        exports: { default: async },
    });
}

/// What a guest may hold of messages that it made, in bytes, all of them together.
const MOST_HELD: usize = 16 * 1024 * 1024;

const NO_CLIENT: &str =
    "this host gives no connection to a broker: a handler answers, and does not send";

/// The metadata that the host adds. A sender's of the same name is left out.
const ID: &str = "pumphouse-id";
const DELIVERY_COUNT: &str = "pumphouse-delivery-count";
const ORDERING_KEY: &str = "pumphouse-ordering-key";
const PUBLISHED_AT: &str = "pumphouse-published-at";
const OWN: [&str; 4] = [ID, DELIVERY_COUNT, ORDERING_KEY, PUBLISHED_AT];

/// The guest holds more messages than it may.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the handler held messages of more than 16MiB")]
pub(crate) struct TooMuchHeld;

/// A message as the guest holds it.
#[derive(Debug, Default)]
#[allow(unreachable_pub, reason = "the bindings name it outwards")]
pub struct Letter {
    topic: Option<String>,
    content_type: Option<String>,
    data: Bytes,
    metadata: Vec<(String, String)>,
    /// What of it is the host's, in bytes. A large message is no fault of the guest's.
    given: usize,
}

impl Letter {
    fn of(invocation: &Invocation) -> Self {
        let letter = Self {
            topic: Some(invocation.source.to_string()),
            content_type: invocation.message.content_type.clone(),
            data: invocation.message.body.clone(),
            metadata: metadata(invocation),
            given: 0,
        };
        Self { given: letter.weight(), ..letter }
    }

    /// What the guest made of it, in bytes.
    fn weight(&self) -> usize {
        let pairs = self.metadata.iter().map(|(name, value)| name.len() + value.len());
        let content_type = self.content_type.as_ref().map_or(0, String::len);
        (self.data.len() + pairs.sum::<usize>() + content_type).saturating_sub(self.given)
    }
}

/// A connection to a broker, of which there are none.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the bindings name it outwards")]
pub enum Client {}

fn metadata(invocation: &Invocation) -> Vec<(String, String)> {
    let message = &*invocation.message;
    let senders = message.headers.iter().filter(|(name, _)| !OWN.contains(name));
    let senders = senders.map(|(name, value)| (name.to_owned(), text(value)));
    let own = [
        (ID, Some(message.id.clone())),
        (DELIVERY_COUNT, Some(invocation.count.0.to_string())),
        (ORDERING_KEY, message.ordering_key.clone()),
        (PUBLISHED_AT, message.published_at.map(|time| time.0.to_string())),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    senders.chain(own).collect()
}

fn text(value: &HeaderValue) -> String {
    match value {
        HeaderValue::Binary(bytes) => BASE64.encode(bytes),
        HeaderValue::Text(text) | HeaderValue::Number(text) => text.clone(),
    }
}

/// The guest's answer to one message.
pub(crate) async fn call(
    instance: &Served,
    store: &mut Store<Guest>,
    invocation: &Invocation,
) -> wasmtime::Result<Outcome> {
    let letter = store.data_mut().hold(Letter::of(invocation))?;
    let handler = instance.wasi_messaging_incoming_handler();
    let answer = handler.call_handle(&mut *store, letter).await?;
    Ok(match answer {
        Ok(()) => Outcome::Ack,
        Err(error) => super::failed(store.data(), &Shown(&error)),
    })
}

struct Shown<'a>(&'a types::Error);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            types::Error::Timeout => f.write_str("timeout"),
            types::Error::Connection(text) => write!(f, "connection: {text}"),
            types::Error::PermissionDenied(text) => write!(f, "permission denied: {text}"),
            types::Error::Other(text) => f.write_str(text),
        }
    }
}

impl Guest {
    fn hold(&mut self, letter: Letter) -> wasmtime::Result<Resource<Letter>> {
        self.weigh(0, letter.weight())?;
        Ok(self.table.push(letter)?)
    }

    /// Changes a message, and what all of them weigh.
    fn change(
        &mut self,
        letter: &Resource<Letter>,
        change: impl FnOnce(&mut Letter),
    ) -> wasmtime::Result<()> {
        let letter = self.table.get_mut(letter)?;
        let before = letter.weight();
        change(letter);
        let after = letter.weight();
        self.weigh(before, after)
    }

    fn weigh(&mut self, before: usize, after: usize) -> wasmtime::Result<()> {
        self.held = self.held.saturating_sub(before).saturating_add(after);
        if self.held > MOST_HELD { Err(TooMuchHeld.into()) } else { Ok(()) }
    }
}

impl types::Host for Guest {}

impl types::HostClient for Guest {
    fn connect(
        &mut self,
        _name: String,
    ) -> wasmtime::Result<Result<Resource<Client>, types::Error>> {
        Ok(Err(types::Error::PermissionDenied(NO_CLIENT.to_owned())))
    }

    fn disconnect(&mut self, _: Resource<Client>) -> wasmtime::Result<Result<(), types::Error>> {
        Ok(Ok(()))
    }

    fn drop(&mut self, client: Resource<Client>) -> wasmtime::Result<()> {
        self.table.delete(client)?;
        Ok(())
    }
}

impl types::HostMessage for Guest {
    fn new(&mut self, data: Vec<u8>) -> wasmtime::Result<Resource<Letter>> {
        self.hold(Letter { data: data.into(), ..Letter::default() })
    }

    fn topic(&mut self, letter: Resource<Letter>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&letter)?.topic.clone())
    }

    fn content_type(&mut self, letter: Resource<Letter>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&letter)?.content_type.clone())
    }

    fn set_content_type(&mut self, letter: Resource<Letter>, text: String) -> wasmtime::Result<()> {
        self.change(&letter, |letter| letter.content_type = Some(text))
    }

    fn data(&mut self, letter: Resource<Letter>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.table.get(&letter)?.data.to_vec())
    }

    fn set_data(&mut self, letter: Resource<Letter>, data: Vec<u8>) -> wasmtime::Result<()> {
        self.change(&letter, |letter| letter.data = data.into())
    }

    fn metadata(
        &mut self,
        letter: Resource<Letter>,
    ) -> wasmtime::Result<Option<Vec<(String, String)>>> {
        let pairs = &self.table.get(&letter)?.metadata;
        Ok((!pairs.is_empty()).then(|| pairs.clone()))
    }

    fn add_metadata(
        &mut self,
        letter: Resource<Letter>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        self.change(&letter, |letter| {
            letter.metadata.retain(|(other, _)| *other != name);
            letter.metadata.push((name, value));
        })
    }

    fn set_metadata(
        &mut self,
        letter: Resource<Letter>,
        pairs: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.change(&letter, |letter| letter.metadata = pairs)
    }

    fn remove_metadata(&mut self, letter: Resource<Letter>, name: String) -> wasmtime::Result<()> {
        self.change(&letter, |letter| letter.metadata.retain(|(other, _)| *other != name))
    }

    fn drop(&mut self, letter: Resource<Letter>) -> wasmtime::Result<()> {
        let letter = self.table.delete(letter)?;
        self.weigh(letter.weight(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use pumphouse_contract::{Count, Headers, Message};

    #[test]
    fn the_hosts_metadata_cannot_be_forged_by_a_sender() {
        let headers: Headers = [
            ("type", HeaderValue::from("order")),
            ("pumphouse-id", HeaderValue::from("forged")),
            ("raw", HeaderValue::Binary(Bytes::from_static(b"\xff\xfe"))),
        ]
        .into_iter()
        .collect();
        let message = Message { id: "m-1".into(), headers, ..Message::default() };
        let invocation = Invocation {
            message: Arc::new(message),
            source: "orders".into(),
            subscription: "orders".into(),
            count: Count(2),
        };
        let pairs = metadata(&invocation);
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(pairs, [("type", "order"), ("raw", "//4="), (ID, "m-1"), (DELIVERY_COUNT, "2")]);
    }
}
