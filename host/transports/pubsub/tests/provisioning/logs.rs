//! What is logged at warn while a test looks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// One warning: its message and its fields by their names.
pub(crate) type Warning = BTreeMap<&'static str, String>;

thread_local! {
    /// A test has a thread of its own, which its runtime does not leave.
    static SEEN: RefCell<Vec<Warning>> = const { RefCell::new(Vec::new()) };
}

/// Listens on all threads. One subscriber for all: whether a line is wanted is remembered for the whole process.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(registry().with(Capture)).expect("the only one");
    });
}

/// What this test's thread warned of since the last look.
pub(crate) fn take() -> Vec<Warning> {
    SEEN.take()
}

struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let ours = event.metadata().target().starts_with("pumphouse_pubsub");
        if ours && *event.metadata().level() <= Level::WARN {
            let mut fields = Fields(BTreeMap::new());
            event.record(&mut fields);
            SEEN.with_borrow_mut(|seen| seen.push(fields.0));
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
