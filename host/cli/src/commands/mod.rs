//! One file a command.

mod check;
mod client;
mod invoke;
mod new;
mod peek;
mod publish;
mod run;
mod status;
mod tenants;
mod wrap;

pub(crate) use check::check;
pub(crate) use invoke::invoke;
pub(crate) use new::new;
pub(crate) use peek::peek;
pub(crate) use publish::publish;
pub(crate) use run::run;
pub(crate) use status::status;
pub(crate) use tenants::tenants;
pub(crate) use wrap::wrap;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Arguments, Completions, Version};
use crate::exit::{Exit, say};
use crate::host;

pub(crate) fn version(arguments: &Version) -> Result<Exit> {
    let (version, transports) = (env!("CARGO_PKG_VERSION"), host::TRANSPORTS);
    if arguments.json {
        say(serde_json::json!({ "version": version, "transports": transports, "wit": host::WIT }));
    } else {
        say(format!(
            "pumphouse {version} (transports: {}; handlers: {})",
            transports.join(", "),
            host::WIT
        ));
    }
    Ok(Exit::Done)
}

pub(crate) fn completions(arguments: &Completions) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "pumphouse", &mut text);
    say(String::from_utf8_lossy(&text).trim_end());
    Ok(Exit::Done)
}

/// `NAME=VALUE` as its two parts.
fn pair(text: &str) -> Result<(String, String)> {
    let (name, value) =
        text.split_once('=').with_context(|| format!("{text:?} is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The bytes of a file, or of standard input for `-`.
fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)
            .context("standard input can't be read")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("{} can't be read", path.display()))?;
    }
    Ok(bytes)
}
