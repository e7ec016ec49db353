//! What is logged at warn while a test looks.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// One warning: its message and its fields by their names.
pub(crate) type Warning = BTreeMap<&'static str, String>;

/// Listens to this thread, which a test's runtime does not leave.
pub(crate) struct Warnings {
    seen: Arc<Mutex<Vec<Warning>>>,
    _listening: DefaultGuard,
}

impl Warnings {
    pub(crate) fn listen() -> Self {
        let seen = Arc::default();
        let subscriber = registry().with(Capture(Arc::clone(&seen)));
        Self { seen, _listening: tracing::subscriber::set_default(subscriber) }
    }

    /// What came since the last look.
    pub(crate) fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut *self.seen.lock().expect("not poisoned"))
    }
}

struct Capture(Arc<Mutex<Vec<Warning>>>);

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let ours = event.metadata().target().starts_with("pumphouse_pubsub");
        if ours && *event.metadata().level() <= Level::WARN {
            let mut fields = Fields(BTreeMap::new());
            event.record(&mut fields);
            self.0.lock().expect("not poisoned").push(fields.0);
        }
    }
}

struct Fields(Warning);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
