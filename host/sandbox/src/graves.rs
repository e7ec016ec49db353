//! Where components go that nobody uses any more: to unmap one takes longer than most calls.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use wasmtime::component::Component;

use crate::errors::SandboxError;
use crate::worker::LOW_PRIORITY;

const NAME: &str = "pumphouse-drop";

/// What waits. Beyond it, whoever drops a component pays for it, so that no more than these are held in vain.
const MOST_WAITING: usize = 256;

/// The thread that drops components. It ends when the last of these is gone.
#[derive(Debug, Clone)]
pub(crate) struct Graves(SyncSender<Component>);

impl Graves {
    /// Starts the thread.
    pub(crate) fn dig() -> Result<Self, SandboxError> {
        let (sender, dropped) = sync_channel::<Component>(MOST_WAITING);
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || {
                // At ordinary priority it does the same.
                let _ = rustix::process::setpriority_process(None, LOW_PRIORITY);
                dropped.into_iter().for_each(drop);
            })
            .map_err(|error| SandboxError::Thread(NAME, error))?;
        Ok(Self(sender))
    }

    /// Drops a component, or a share of one, later and elsewhere.
    pub(crate) fn bury(&self, component: Component) {
        // What is given back is dropped here.
        drop(self.0.try_send(component));
    }
}
