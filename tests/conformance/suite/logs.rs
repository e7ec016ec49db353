//! What the host logs, by subscription: each trial has subscriptions of its own.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// One line of the log.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) message: String,
    fields: BTreeMap<&'static str, String>,
}

impl Line {
    /// A field as it is shown; empty where there is none of that name.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.level, self.message, self.fields)
    }
}

static BOOK: Mutex<BTreeMap<String, Vec<Line>>> = Mutex::new(BTreeMap::new());

fn book() -> std::sync::MutexGuard<'static, BTreeMap<String, Vec<Line>>> {
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens from now on.
pub(crate) fn listen() -> anyhow::Result<()> {
    Ok(tracing::subscriber::set_global_default(registry().with(Capture))?)
}

/// Every line about a subscription so far.
pub(crate) fn of(subscription: &str) -> Vec<Line> {
    book().get(subscription).cloned().unwrap_or_default()
}

struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("pumphouse") && *metadata.level() <= Level::INFO
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let Some(subscription) = fields.0.remove("subscription") else { return };
        let message = fields.0.remove("message").unwrap_or_default();
        let line = Line { level: *event.metadata().level(), message, fields: fields.0 };
        book().entry(subscription).or_default().push(line);
    }
}

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
