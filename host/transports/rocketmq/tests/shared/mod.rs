//! What all tests against real servers have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pumphouse_contract::{Clock, Mono, Timestamp};
use pumphouse_rocketmq::RocketmqSettings;
use pumphouse_test_brokers::{RocketMq, Setup};

/// A server that a test has for itself.
pub(crate) async fn own(setup: Setup) -> RocketMq {
    RocketMq::start(setup).await.expect("the server starts")
}

/// A name that no other test uses.
pub(crate) fn unique(stem: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{stem}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

struct TestClock(Instant);

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        Timestamp(since.as_millis().try_into().expect("a date of ours"))
    }

    fn mono(&self) -> Mono {
        Mono(self.0.elapsed())
    }
}

pub(crate) fn settings(namesrv: &str) -> RocketmqSettings {
    let mut settings =
        RocketmqSettings::new(vec![namesrv.to_owned()], Arc::new(TestClock(Instant::now())));
    // The servers share a small machine with everything else that is tested.
    settings.timeouts.admin = Duration::from_secs(30);
    settings
}
