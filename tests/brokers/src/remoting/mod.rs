//! RocketMQ's remoting protocol: a call by hand, and a proxy for faults that happen on purpose.
//!
//! The proxy stands before the name server and every broker. It puts its own addresses into the
//! name server's answers, so that a client that is given its [`namesrv`](RemotingProxy::namesrv)
//! stays here. It counts requests by their [`code`], and follows rules:
//!
//! ```no_run
//! # use std::time::Duration;
//! # async fn example() -> Result<(), pumphouse_test_brokers::Error> {
//! use pumphouse_test_brokers::remoting::{RemotingProxy, code};
//! use pumphouse_test_brokers::{RocketMq, Setup};
//!
//! let servers = RocketMq::start(Setup::default()).await?;
//! let proxy = RemotingProxy::start(&servers).await?;
//! // The first acknowledgement is done and never confirmed; sends for one topic are refused.
//! let lost = proxy.on(code::ACK_MESSAGE).nth(1).drop_after();
//! let busy = proxy.on(code::SEND_MESSAGE).when(|request| request.field("topic") == Some("top"));
//! let busy = busy.times(1).answer(code::SYSTEM_BUSY, "too many requests");
//! // … a client works against `proxy.namesrv()` …
//! assert!(proxy.wait_for(code::ACK_MESSAGE, 2, Duration::from_secs(30)).await);
//! assert_eq!((lost.count(), busy.count()), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! The first rule that applies is followed, in the order of their making. Requests of one
//! connection are independent: one that is held back or lost does not hold up the others. What
//! a broker asks of a client, and the client's answer, pass unseen.
//!
//! It runs in the caller's runtime. Dropping it closes all its connections.

mod call;
pub mod code;
mod frame;
mod proxy;
mod request;
mod rule;
mod wire;

pub use crate::faults::Applied;
pub use call::{Answer, call};
pub use frame::Fields;
pub use proxy::RemotingProxy;
pub use request::{Request, Server};
pub use rule::On;
