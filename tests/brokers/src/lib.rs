//! Starts and stops the real servers that tests talk to, and puts faults between them and a client.
//!
//! Every server is a local process on loopback with a free port. It ends when its handle is
//! dropped, and also when the test process ends in any other way, a SIGKILL included.
//! Nothing here depends on a crate of the product.
//!
//! - [`Fauxqs`]: SQS and SNS, in memory.
//! - [`ElasticMq`]: SQS, in memory or durable over a kill.
//! - [`PubsubEmulator`]: Google Pub/Sub, in memory.
//! - [`RocketMq`]: Apache RocketMQ, durable over a kill.
//! - [`JavaClient`]: RocketMQ's own client, as other programs use it.
//! - [`proxy::Proxy`]: counts, cuts, slows, holds and rewrites what passes.
//! - [`grpc::GrpcProxy`]: the same for gRPC.
//! - [`remoting::RemotingProxy`]: the same for RocketMQ.
//! - [`raw`]: calls by plain HTTP, as a program that is not ours makes them.

mod cache;
mod certificate;
mod elasticmq;
mod error;
mod faults;
mod fauxqs;
pub mod grpc;
pub mod install;
mod java;
mod names;
mod port;
mod process;
pub mod proxy;
mod pubsub;
pub mod raw;
pub mod remoting;
mod rocketmq;
mod sdk;
mod server;

pub use certificate::Certificate;
pub use elasticmq::{ElasticMq, Storage};
pub use error::Error;
pub use fauxqs::Fauxqs;
pub use java::{JavaClient, JavaMessage, Received, Sent};
pub use names::unique;
pub use pubsub::PubsubEmulator;
pub use rocketmq::{RocketMq, Setup, TopicKind};
