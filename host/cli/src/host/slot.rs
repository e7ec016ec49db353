//! One subscription of a running host: waiting for its broker, or pumping.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse_contract::ports::{Condition, Source, SubscriptionStatus};
use pumphouse_pump::{Pump, Stopped};
use tokio_util::sync::CancellationToken;

enum State {
    /// Its places could not be opened yet, and why.
    Waiting(Option<String>),
    Pumping(Arc<Pump>, Arc<dyn Source>),
    Stopped,
}

pub(crate) struct Slot {
    name: String,
    handler: String,
    state: Mutex<State>,
    /// Ends the waiting.
    pub(crate) stopping: CancellationToken,
}

impl Slot {
    pub(crate) fn new(name: &str, handler: &str) -> Self {
        Self {
            name: name.to_owned(),
            handler: handler.to_owned(),
            state: Mutex::new(State::Waiting(None)),
            stopping: CancellationToken::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places could not be opened. Whether that is news.
    pub(crate) fn waits(&self, problem: String) -> bool {
        match &mut *self.state() {
            State::Waiting(before) => before.replace(problem.clone()).as_ref() != Some(&problem),
            State::Pumping(..) | State::Stopped => false,
        }
    }

    /// The pump is there. Starts it only where the slot was not stopped meanwhile.
    pub(crate) fn pump(&self, source: Arc<dyn Source>, start: impl FnOnce() -> Pump) {
        let mut state = self.state();
        if matches!(*state, State::Waiting(_)) {
            *state = State::Pumping(Arc::new(start()), source);
        }
    }

    fn pumping(&self) -> Option<Arc<Pump>> {
        match &*self.state() {
            State::Pumping(pump, _) => Some(pump.clone()),
            State::Waiting(_) | State::Stopped => None,
        }
    }

    /// Whether it pumps, and its source is not there.
    pub(crate) fn misses_source(&self) -> bool {
        self.pumping().is_some_and(|pump| pump.misses_source())
    }

    /// Asks for no more messages.
    pub(crate) fn drain(&self) {
        if let Some(pump) = self.pumping() {
            pump.drain();
        }
    }

    /// Drops the calls in progress.
    pub(crate) fn cut(&self) {
        if let Some(pump) = self.pumping() {
            pump.cut();
        }
    }

    /// Ends the waiting or the pump, within the grace.
    pub(crate) async fn stop(&self, grace: Duration) -> Stopped {
        self.stopping.cancel();
        match self.pumping() {
            Some(pump) => pump.stop(grace).await,
            None => {
                *self.state() = State::Stopped;
                Stopped { clean: true }
            }
        }
    }

    /// What it reads from; none where that could not be opened yet.
    pub(crate) fn source(&self) -> Option<Arc<dyn Source>> {
        match &*self.state() {
            State::Pumping(_, source) => Some(source.clone()),
            State::Waiting(_) | State::Stopped => None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn status(&self) -> SubscriptionStatus {
        let (condition, problem) = match &*self.state() {
            State::Pumping(pump, _) => return pump.status(),
            State::Waiting(None) => (Condition::Starting, None),
            State::Waiting(problem) => (Condition::Waiting, problem.clone()),
            State::Stopped => (Condition::Stopped, None),
        };
        SubscriptionStatus {
            name: self.name.clone(),
            condition,
            problem,
            in_flight: 0,
            oldest_in_progress: None,
            handler: self.handler.clone(),
        }
    }
}
