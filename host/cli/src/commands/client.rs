//! A running host, asked over its admin listener.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pumphouse_config::Config;
use serde_json::Value;
use ureq::Agent;

use crate::exit::Exit;
use crate::host;

/// The longest that one question may take. Publishing waits for the disk.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    agent: Agent,
    base: String,
}

impl Client {
    /// The host at this address, else the one of this configuration file; how to end where neither says one.
    pub(crate) fn found(
        admin: Option<SocketAddr>,
        config: Option<&Path>,
    ) -> Result<std::result::Result<Self, Exit>> {
        match (admin, config) {
            (Some(address), _) => Ok(Ok(Self::at(address))),
            (None, Some(path)) => match host::load(path) {
                Some(config) => Self::of(&config).map(Ok),
                None => Ok(Err(Exit::Configuration)),
            },
            (None, None) => Ok(Err(Exit::Usage)),
        }
    }

    /// The host of this configuration.
    pub(crate) fn of(config: &Config) -> Result<Self> {
        let Some(listen) = config.host.admin_listen else {
            bail!("the configuration has admin.listen = \"off\": a running host can't be asked");
        };
        Ok(Self::at(listen))
    }

    /// The host that listens there.
    pub(crate) fn at(listen: SocketAddr) -> Self {
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            // An error's body says what went wrong.
            .http_status_as_error(false)
            .build()
            .into();
        Self { agent, base: format!("http://{listen}") }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let url = format!("{}{path}", self.base);
        let answer = self.agent.get(&url).call().with_context(|| self.unreachable())?;
        read(answer)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("{}{path}", self.base);
        let answer = self.agent.post(&url).send_json(body).with_context(|| self.unreachable())?;
        read(answer)
    }

    fn unreachable(&self) -> String {
        format!(
            "no host answers at {}: is `pumphouse run` running with this configuration?",
            self.base
        )
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Result<Value> {
    let status = answer.status();
    let text = answer.body_mut().read_to_string().context("the host's answer can't be read")?;
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if !status.is_success() {
        let said = value.get("error").and_then(Value::as_str).map(str::to_owned);
        bail!("the host answers {}: {}", status, said.unwrap_or_else(|| value.to_string()));
    }
    Ok(value)
}
