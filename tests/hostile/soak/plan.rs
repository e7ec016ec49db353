//! Who takes part, and when what happens.

use std::time::Duration;

/// The tenants that misbehave: a name, its guest, and the fault or answer that all of its messages end by.
pub(crate) const HOSTILE: [(&str, &str); 6] = [
    ("loops", "hostile_loop"),
    ("hoards", "hostile_memory"),
    ("panics", "hostile_panic"),
    ("floods", "hostile_flood"),
    ("dives", "hostile_recursion"),
    ("lies", "hostile_random"),
];

/// The tenants that behave.
pub(crate) const HONEST: [&str; 3] = ["acme", "globex", "initech"];

/// The component that is swapped beneath the honest tenants, and what it is swapped with.
pub(crate) const SWAPPED: [&str; 2] = ["version_one", "version_two"];

/// Kills in the first quarter.
pub(crate) const KILLS: u32 = 3;

/// When what happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// All of it, but the end.
    pub(crate) length: Duration,
}

impl Plan {
    pub(crate) fn new(length: Duration) -> Self {
        Self { length }
    }

    /// The end of the kills.
    pub(crate) fn quarter(self) -> Duration {
        self.length / 4
    }

    pub(crate) fn between_kills(self) -> Duration {
        self.quarter() / (KILLS + 1)
    }

    /// The time between two swaps.
    pub(crate) fn between_swaps(self) -> Duration {
        (self.length / 20).clamp(Duration::from_secs(3), Duration::from_secs(30))
    }
}

/// The configuration.
pub(crate) fn configuration() -> String {
    let mut text = String::new();
    for (name, guest) in HOSTILE {
        text += &tenant(
            name,
            &format!("{{guests}}/{guest}.wasm"),
            "memory = \"16MiB\", deadline = \"500ms\"",
        );
    }
    for name in HONEST {
        text += &tenant(name, "{here}/swapped.wasm", "memory = \"16MiB\", deadline = \"20s\"");
    }
    text
}

/// A tenant with one handler and one subscription of its name.
fn tenant(name: &str, component: &str, limits: &str) -> String {
    let dies = if HONEST.contains(&name) { "-1" } else { "2" };
    format!(
        r#"
[tenants.{name}]
limits = {{ {limits} }}

[tenants.{name}.handlers.{name}]
component = "{component}"
grants.logging = true

[subscriptions.{name}]
source = {{ embedded.queue = "{name}" }}
handler = "{name}/{name}"
concurrency = 4
max_deliveries = {dies}
retry = {{ backoff = "100ms" }}
dead_letter = {{ embedded.queue = "dead-{name}" }}
"#
    )
}
