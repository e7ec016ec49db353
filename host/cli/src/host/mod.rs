//! The host as a whole: what `run` starts, and what the other commands need of it.

mod account;
mod crypto;
mod depths;
pub(crate) mod grants;
mod handlers;
mod lock;
mod reload;
mod running;
mod slot;
mod start;
mod transports;
mod view;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use pumphouse_config::{Config, Loaded, Place};
use pumphouse_contract::ports::Sink;
use pumphouse_telemetry::{LogFormat, LogSettings, init_logs};

use crate::exit::warn;

pub(crate) use crypto::choose as choose_crypto;
pub(crate) use handlers::compile_worker;
pub(crate) use reload::Watch;
pub(crate) use start::run;
pub(crate) use transports::{TRANSPORTS, Transports, build};

/// The interface that handlers are built against.
pub(crate) const WIT: &str = "pumphouse:handler@1.0.0";

/// RocketMQ's client and the crates beneath it report each failed request as two errors, a dozen a second while a
/// broker is away; the transport says what of it matters. `RUST_LOG=info,rocketmq=info` gets at them.
const QUIET: &str = "rocketmq=off";

pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The configuration, for a command that only needs what it says; what is wrong is printed.
pub(crate) fn load(path: &Path) -> Option<Config> {
    match pumphouse_config::load(path, &build()) {
        Ok(loaded) => Some(loaded.config),
        Err(found) => {
            warn(found.render(std::io::stderr().is_terminal()));
            None
        }
    }
}

/// The configuration with its warnings, which the caller says where they belong; errors are printed.
pub(crate) fn load_with_warnings(path: &Path) -> Option<Loaded> {
    pumphouse_config::load(path, &build())
        .inspect_err(|found| warn(found.render(std::io::stderr().is_terminal())))
        .ok()
}

/// Logs as the configuration says.
pub(crate) fn log(config: &Config) -> Result<()> {
    let format = match config.host.log.format {
        pumphouse_config::LogFormat::Auto => LogFormat::Auto,
        pumphouse_config::LogFormat::Text => LogFormat::Text,
        pumphouse_config::LogFormat::Json => LogFormat::Json,
    };
    let filter = filter(config.host.log.level.word());
    Ok(init_logs(&LogSettings { format, filter, beneath: QUIET.to_owned() })?)
}

/// What is logged at this level. Libraries say no more than at info: a compiler's traces slow the start down by
/// minutes, and an HTTP client's hold the bodies of messages. `RUST_LOG` gets at them.
fn filter(level: &str) -> String {
    match level {
        "debug" | "trace" => format!("info,pumphouse={level}"),
        _ => level.to_owned(),
    }
}

/// Logs for a command that talks to a person.
pub(crate) fn log_plainly() -> Result<()> {
    let (format, beneath) = (LogFormat::Text, QUIET.to_owned());
    Ok(init_logs(&LogSettings { format, beneath, ..LogSettings::default() })?)
}

/// A sink for one place, for a command that publishes without a host, and what it closes afterwards.
pub(crate) async fn sink_alone(
    config: &Config,
    place: &Place,
) -> Result<(Arc<dyn Sink>, Transports)> {
    transports::sink_alone(config, place).await
}
