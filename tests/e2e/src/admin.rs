//! What a running host answers over HTTP.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The longest that one answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON; `Null` where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    config.into()
}

/// Asks once. None: nobody answers.
#[must_use]
pub fn get(url: &str) -> Option<Answer> {
    let mut answer = agent().get(url).call().ok()?;
    let text = answer.body_mut().read_to_string().ok()?;
    Some(Answer { status: answer.status().as_u16(), text })
}

/// Publishes to an embedded queue over HTTP, without the command and the configuration that it reads; the id.
///
/// # Panics
/// When it is refused.
#[must_use]
pub fn publish_to(base: &str, queue: &str, body: &Value) -> String {
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let message = json!({ "body_base64": STANDARD.encode(text) });
    let url = format!("{base}/v1/queues/{queue}/messages");
    let mut answer = agent().post(&url).send_json(message).expect("an answer");
    let text = answer.body_mut().read_to_string().expect("an answer");
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    answer["id"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// A scrape.
#[derive(Debug, Clone)]
pub struct Metrics(pub String);

impl Metrics {
    /// The sum of all series of this name that have these labels; 0 where there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let values = self.0.lines().filter_map(|line| {
            let (series, value) = line.split_once("} ").unwrap_or((line, ""));
            let (found, given) = series.split_once('{')?;
            let has = |(name, value): &(&str, &str)| given.contains(&format!("{name}=\"{value}\""));
            (found == name && labels.iter().all(has))
                .then(|| value.split(' ').next()?.parse::<f64>().ok())?
        });
        values.fold(0.0, |sum, value| sum + value)
    }

    /// Whether there is a series of this name with these labels.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.lines().any(|line| line.split(['{', ' ']).next() == Some(name))
    }

    /// A series without labels.
    #[must_use]
    pub fn plain(&self, name: &str) -> Option<f64> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }
}
