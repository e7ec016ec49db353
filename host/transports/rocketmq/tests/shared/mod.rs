//! What all tests against real servers have in common.

use std::sync::Arc;
use std::time::Duration;

use pumphouse_pump::SystemClock;
use pumphouse_rocketmq::RocketmqSettings;
pub(crate) use pumphouse_test_brokers::unique;
use pumphouse_test_brokers::{RocketMq, Setup};

/// A server that a test has for itself.
pub(crate) async fn own(setup: Setup) -> RocketMq {
    RocketMq::start(setup).await.expect("the server starts")
}

pub(crate) fn settings(namesrv: &str) -> RocketmqSettings {
    let mut settings =
        RocketmqSettings::new(vec![namesrv.to_owned()], Arc::new(SystemClock::new()));
    // The servers share a small machine with everything else that is tested.
    settings.timeouts.admin = Duration::from_secs(30);
    settings
}
