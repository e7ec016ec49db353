//! What can be seen of a running host: metrics, and the format of its logs.
//!
//! The names of metrics are in [`names`] alone. The trace context of messages is
//! [`pumphouse_contract::trace`], since the pump reads it.

mod logs;
mod metrics;
pub mod names;

pub use logs::{LogError, LogFormat, LogSettings, init_logs};
pub use metrics::{CONTENT_TYPE, Metrics, OTHER, Subscription};
