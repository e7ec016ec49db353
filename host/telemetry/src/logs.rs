//! Where log lines go and how they look.

mod json;
mod text;

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// One line of text an event, for people.
    Text,
    /// One line of JSON an event, for programs.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// How lines look.
    pub format: LogFormat,
    /// Directives such as `info` or `warn,pumphouse_pump=debug`. The variable `RUST_LOG` takes their place where
    /// it is set and not empty.
    pub filter: String,
    /// Directives beneath those, for libraries that say more than their user can act on, such as `client=error`. They
    /// hold until `filter` or `RUST_LOG` names the same target or a closer one: `info` alone leaves them in force.
    pub beneath: String,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Auto, filter: "info".to_owned(), beneath: String::new() }
    }
}

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The directives can't be read.
    #[error("log filter {filter:?} from {origin} is not valid")]
    Filter {
        /// The directives.
        filter: String,
        /// Where they came from.
        origin: &'static str,
        /// What is wrong with them.
        source: ParseError,
    },
    /// This process logs already.
    #[error("logs are set up already")]
    SetUpAlready(#[source] tracing_subscriber::util::TryInitError),
}

/// Sends what this process logs to standard error, for the rest of its life.
///
/// A line is written by the thread that logs it, as a whole: a line that was logged survives a crash, and whoever
/// reads standard error must keep up. No value can end a line or start another, in either format.
///
/// # Errors
/// The directives are not valid, or this was called before.
pub fn init_logs(settings: &LogSettings) -> Result<(), LogError> {
    let from_variable = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|text| !text.is_empty());
    let (text, origin) = from_variable
        .map_or_else(|| (settings.filter.clone(), "the settings"), |text| (text, "RUST_LOG"));
    let filter = parse(&settings.beneath, &text).map_err(|source| LogError::Filter {
        filter: text,
        origin,
        source,
    })?;
    let terminal = std::io::stderr().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let layer = layer(settings.format, terminal, terminal && !no_color, std::io::stderr);
    subscriber(filter, layer).try_init().map_err(LogError::SetUpAlready)
}

fn parse(beneath: &str, filter: &str) -> Result<EnvFilter, ParseError> {
    let parts: Vec<&str> = [beneath, filter].into_iter().filter(|part| !part.is_empty()).collect();
    EnvFilter::builder().with_regex(false).parse(parts.join(","))
}

fn subscriber(
    filter: EnvFilter,
    layer: Box<dyn Layer<Registry> + Send + Sync>,
) -> impl Subscriber + Send + Sync {
    tracing_subscriber::registry().with(layer.with_filter(filter))
}

fn layer<W>(
    format: LogFormat,
    terminal: bool,
    colors: bool,
    writer: W,
) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    match (format, terminal) {
        (LogFormat::Text, _) | (LogFormat::Auto, true) => {
            let layer = tracing_subscriber::fmt::layer();
            layer.fmt_fields(text::Fields).with_ansi(colors).with_writer(writer).boxed()
        }
        (LogFormat::Json, _) | (LogFormat::Auto, false) => json::Lines::to(writer).boxed(),
    }
}

#[cfg(test)]
mod tests;
