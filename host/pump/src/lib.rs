//! The message pump: receive, admit, call, decide, settle.
//!
//! The loop is `run` in `pump.rs`; one message's life is `live` in `life.rs`. What is decided
//! there is decided by the pure functions of [`pumphouse_contract::decide()`].

mod admission;
mod clock;
mod duplicates;
mod health;
mod lanes;
mod life;
mod log;
mod pace;
mod progress;
mod pump;
mod route;
mod settings;
mod settler;

pub use clock::SystemClock;
pub use pace::Pace;
pub use pump::{Pump, Stopped};
pub use settings::{Deduplicate, Dispatch, KeySource, Settings, Sinks, Subscription};
