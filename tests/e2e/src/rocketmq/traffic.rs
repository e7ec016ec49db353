//! What a host asked of RocketMQ, as a proxy saw it.

use std::time::Duration;

use pumphouse_test_brokers::RocketMq;
use pumphouse_test_brokers::remoting::{RemotingProxy, Request, code};

use crate::servers::block_on;

/// A proxy in front of this RocketMQ.
///
/// # Panics
/// When there is no port for it.
#[must_use]
pub fn proxy_of(server: &RocketMq) -> RemotingProxy {
    block_on(RemotingProxy::start(server)).expect("a proxy")
}

/// The consumer group of a pop, an acknowledgement or a change of an invisible time.
#[must_use]
pub fn group_of(request: &Request) -> &str {
    request.field("consumerGroup").unwrap_or_default()
}

/// The topic of any request; the second way to send gives its fields names of one letter.
#[must_use]
pub fn topic_of(request: &Request) -> &str {
    request.field("topic").or_else(|| request.field("b")).unwrap_or_default()
}

/// Whether it sends messages.
#[must_use]
pub fn is_publish(request: &Request) -> bool {
    [code::SEND_MESSAGE, code::SEND_MESSAGE_V2, code::SEND_BATCH_MESSAGE].contains(&request.code)
}

/// The invisible time that a pop or a change asks for.
///
/// # Panics
/// When it asks for none.
#[must_use]
pub fn delay_of(request: &Request) -> Duration {
    let text = request.field("invisibleTime").unwrap_or_else(|| panic!("{request:?}"));
    Duration::from_millis(text.parse().expect("milliseconds"))
}
