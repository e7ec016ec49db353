//! Where and when it was measured: figures of one machine say nothing about another.

use std::fmt;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use pumphouse_contract::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) struct Machine {
    at: String,
    cores: usize,
    processor: String,
    kernel: String,
    load: String,
}

impl Machine {
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or_default();
        Self {
            at: Timestamp(millis).rfc3339(),
            cores: available_parallelism().map_or(1, usize::from),
            processor: processor().unwrap_or_else(|| "unknown".to_owned()),
            kernel: read("/proc/sys/kernel/osrelease"),
            load: load(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "at": self.at,
            "cores": self.cores,
            "processor": self.processor,
            "kernel": self.kernel,
            "load_before": self.load,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, cores, processor, kernel, load } = self;
        write!(f, "{at}, {cores} × {processor}, kernel {kernel}, load before {load}")
    }
}

/// The load of the last minute: above the benchmark's own it says that others were measured, too.
pub(crate) fn load() -> String {
    read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}

fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Empty where there is no such file: other systems have no `/proc`.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
