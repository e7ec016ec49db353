//! Topics and consumer groups of the real Apache RocketMQ, as another program sees them.

mod message;
mod space;
mod traffic;

use std::sync::OnceLock;

use pumphouse_test_brokers::remoting::RemotingProxy;
use pumphouse_test_brokers::{RocketMq, Setup};

pub use message::{Message, Stored, java_hash, message};
pub use space::{QUEUES, Space, Where, came_again};
pub use traffic::{delay_of, group_of, is_publish, proxy_of, topic_of};

use crate::servers::block_on;

/// The group that tests read topics with, without taking anything from them.
const READER: &str = "reader";

static SHARED: OnceLock<RocketMq> = OnceLock::new();

/// The RocketMQ that many tests share. It makes nothing by itself.
#[must_use]
pub fn rocketmq() -> Where {
    Where::of(shared())
}

/// A proxy in front of it.
///
/// # Panics
/// When there is no port for it.
#[must_use]
pub fn proxy() -> RemotingProxy {
    proxy_of(shared())
}

fn shared() -> &'static RocketMq {
    SHARED.get_or_init(|| started(Setup::default()))
}

/// One of a test's own, which it may kill.
///
/// # Panics
/// When it does not come up.
#[must_use]
pub fn started(setup: Setup) -> RocketMq {
    let server = block_on(RocketMq::start(setup)).expect("RocketMQ");
    block_on(server.create_group(READER, false)).expect("a group to read with");
    server
}
