//! How a component is entered: the worlds that a guest may be written for, one way to instantiate and call.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{HeaderValue, Message, Outcome, Reason, Rejection};
use wasmtime::Store;
use wasmtime::component::InstancePre;

use crate::bindings::pumphouse::handler::types as wit;
use crate::bindings::{Handler, HandlerPre};
use crate::fit;
use crate::guest::Guest;
use crate::worlds::World;
use crate::worlds::messaging::{self, Served, ServedPre};
use crate::worlds::spin_sqs::{self, SpinSqs, SpinSqsPre};

/// A component that is linked and can be instantiated.
pub(crate) enum Entry {
    /// The world of `pumphouse:handler`.
    Handler(HandlerPre<Guest>),
    /// The world of `wasi:messaging`.
    Messaging(ServedPre<Guest>),
    /// The world of Spin's trigger for SQS.
    SpinSqs(SpinSqsPre<Guest>),
}

/// An instance that can be called.
pub(crate) enum Instance {
    Handler(Handler),
    Messaging(Served),
    SpinSqs(SpinSqs),
}

impl Entry {
    /// Of a component that exports this world.
    ///
    /// # Errors
    /// What it exports has another shape than this host's.
    pub(crate) fn new(pre: InstancePre<Guest>, world: World) -> wasmtime::Result<Self> {
        fit::check_shape(&pre, world)?;
        Ok(match world {
            World::Handler => Self::Handler(HandlerPre::new(pre)?),
            World::Messaging => Self::Messaging(ServedPre::new(pre)?),
            World::SpinSqs => Self::SpinSqs(SpinSqsPre::new(pre)?),
        })
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<Guest>) -> wasmtime::Result<Instance> {
        match self {
            Self::Handler(pre) => Ok(Instance::Handler(pre.instantiate_async(store).await?)),
            Self::Messaging(pre) => Ok(Instance::Messaging(pre.instantiate_async(store).await?)),
            Self::SpinSqs(pre) => Ok(Instance::SpinSqs(pre.instantiate_async(store).await?)),
        }
    }
}

impl Instance {
    /// The guest's answer to one message.
    pub(crate) async fn call(
        &self,
        store: &mut Store<Guest>,
        invocation: &Invocation,
    ) -> wasmtime::Result<Outcome> {
        match self {
            Self::Handler(instance) => {
                let binary = binary_headers(&invocation.message);
                let headers = headers(&invocation.message, &binary);
                let message = message(invocation, &headers);
                let handler = instance.pumphouse_handler_incoming_handler();
                handler.call_handle(store, message).await.map(answer)
            }
            Self::Messaging(instance) => messaging::call(instance, store, invocation).await,
            Self::SpinSqs(instance) => spin_sqs::call(instance, store, invocation).await,
        }
    }
}

/// The values that a guest sees in base64, in order. Most messages have none.
fn binary_headers(message: &Message) -> Vec<String> {
    let binary = message.headers.iter().filter_map(|(_, value)| match value {
        HeaderValue::Binary(bytes) => Some(BASE64.encode(bytes)),
        HeaderValue::Text(_) | HeaderValue::Number(_) => None,
    });
    binary.collect()
}

fn headers<'a>(message: &'a Message, binary: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let mut binary = binary.iter();
    let pairs = message.headers.iter().map(|(name, value)| {
        let value = value.as_str().or_else(|| binary.next().map(String::as_str));
        (name, value.unwrap_or_default())
    });
    pairs.collect()
}

fn message<'a>(invocation: &'a Invocation, headers: &'a [(&'a str, &'a str)]) -> wit::Message<'a> {
    let message = &*invocation.message;
    wit::Message {
        id: &message.id,
        source: &invocation.source,
        delivery_count: invocation.count.0,
        headers,
        content_type: message.content_type.as_deref(),
        ordering_key: message.ordering_key.as_deref(),
        published_at: message.published_at.map(|time| time.0),
        body: &message.body,
    }
}

fn answer(outcome: wit::Outcome) -> Outcome {
    match outcome {
        wit::Outcome::Ack => Outcome::Ack,
        wit::Outcome::Defer(millis) => Outcome::Defer(millis.map(Duration::from_millis)),
        wit::Outcome::Reject(wit::Rejection { reason, description }) => {
            let reason = match reason {
                wit::RejectionReason::Unacceptable => Reason::Unacceptable,
                wit::RejectionReason::DeliveryError => Reason::DeliveryError,
                wit::RejectionReason::None => Reason::None,
            };
            Outcome::Reject(Rejection { reason, description })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pumphouse_contract::Headers;

    #[test]
    fn a_guest_sees_numbers_in_digits_and_bytes_in_base64() {
        let headers: Headers = [
            ("text", HeaderValue::from("a")),
            ("raw", HeaderValue::Binary(Bytes::from_static(b"\xff\xfe"))),
            ("number", HeaderValue::Number("7".into())),
            ("more", HeaderValue::Binary(Bytes::from_static(b"x"))),
        ]
        .into_iter()
        .collect();
        let message = Message { headers, ..Message::default() };
        let binary = binary_headers(&message);
        assert_eq!(
            super::headers(&message, &binary),
            [("text", "a"), ("raw", "//4="), ("number", "7"), ("more", "eA==")]
        );
    }
}
