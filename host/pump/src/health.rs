//! How a pump's broker is doing: said once when trouble starts and once when it ends.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::Condition;
use pumphouse_contract::{Backoff, Count, Jitter, Roll};

/// Waits between receives that fail.
const RECEIVE_BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(200),
    max: Duration::from_secs(10),
    jitter: Jitter::Full,
};

/// The kind of [`pumphouse_contract::ports::ReceiveError::Missing`].
const MISSING: &str = "missing";

#[derive(Debug)]
struct State {
    condition: Condition,
    kind: &'static str,
    problem: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Health(Mutex<State>);

impl Health {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { condition: Condition::Starting, kind: "", problem: None }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The condition, and why the pump waits.
    pub(crate) fn get(&self) -> (Condition, Option<String>) {
        let state = self.state();
        (state.condition, state.problem.clone())
    }

    /// Whether the pump waits for a source that is not there.
    pub(crate) fn misses_source(&self) -> bool {
        let state = self.state();
        state.condition == Condition::Waiting && state.kind == MISSING
    }

    /// A receive was answered.
    pub(crate) fn answered(&self, subscription: &str) {
        let mut state = self.state();
        match state.condition {
            Condition::Running | Condition::Draining | Condition::Stopped => return,
            Condition::Starting => tracing::info!(subscription, "receiving"),
            Condition::Waiting => tracing::info!(subscription, "receiving again"),
        }
        *state = State { condition: Condition::Running, kind: "", problem: None };
    }

    /// A receive failed. Another kind of failure is news; the same one is not.
    pub(crate) fn failed(&self, subscription: &str, kind: &'static str, problem: String) {
        let mut state = self.state();
        if matches!(state.condition, Condition::Draining | Condition::Stopped) {
            return;
        }
        if state.condition != Condition::Waiting || state.kind != kind {
            tracing::warn!(
                subscription,
                kind,
                problem,
                "receiving fails; trying again with backoff"
            );
        }
        *state = State { condition: Condition::Waiting, kind, problem: Some(problem) };
    }

    /// The pump drains, or has ended.
    pub(crate) fn leave(&self, condition: Condition) {
        self.state().condition = condition;
    }
}

/// The wait before the next receive, after so many failures in a row.
pub(crate) fn receive_backoff(failures: u32) -> Duration {
    // Half of it is certain, so that an unlucky roll does not hammer a broker that is down.
    RECEIVE_BACKOFF.after(Count(failures), Roll::new(0.5 + rand::random::<f64>() / 2.0))
}
