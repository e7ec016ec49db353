//! The sandbox with real components: honest, hostile, broken, replaced while they run.

mod calls;
mod common;
mod deploy;
mod hostile;
mod logs;
mod watch;
mod wit;
