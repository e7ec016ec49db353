//! Events as lines of JSON, for programs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::text::with_causes;

/// Writes each event as one flat object: the time, the level, the target, the constant message, then the fields of
/// the event and of the spans around it. Where names meet, the innermost counts.
#[derive(Debug)]
pub(crate) struct Lines<W> {
    writer: W,
}

impl<W> Lines<W> {
    pub(crate) fn to(writer: W) -> Self {
        Self { writer }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    timestamp: &'a str,
    level: &'a str,
    target: &'a str,
    message: &'a Value,
    #[serde(flatten)]
    fields: &'a BTreeMap<&'static str, Value>,
}

/// The fields of a span, kept with it.
#[derive(Default, Clone)]
struct Fields(BTreeMap<&'static str, Value>);

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(Fields(of_span)) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.iter().map(|(name, value)| (*name, value.clone())));
            }
        }
        event.record(&mut fields);
        self.write(event, fields);
    }
}

impl<W: for<'w> MakeWriter<'w>> Lines<W> {
    fn write(&self, event: &Event<'_>, Fields(mut fields): Fields) {
        let mut timestamp = String::new();
        // A clock that can't be read leaves the time out, not the line.
        let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
        let metadata = event.metadata();
        // A record of the `log` crate names its own target.
        let logged = fields.remove("log.target");
        fields.retain(|name, _| !name.starts_with("log."));
        let message = fields.remove("message").unwrap_or_default();
        let line = Line {
            timestamp: &timestamp,
            level: metadata.level().as_str(),
            target: logged.as_ref().and_then(Value::as_str).unwrap_or(metadata.target()),
            message: &message,
            fields: &fields,
        };
        if let Ok(mut bytes) = serde_json::to_vec(&line) {
            bytes.push(b'\n');
            // Where standard error is gone there is nobody left to tell.
            let _ = self.writer.make_writer_for(metadata).write_all(&bytes);
        }
    }
}

impl Fields {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        // The line has these keys already.
        let name = match field.name() {
            "timestamp" => "timestamp_",
            "level" => "level_",
            "target" => "target_",
            name => name,
        };
        self.0.insert(name, value.into());
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.insert(field, with_causes(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}"));
    }
}
