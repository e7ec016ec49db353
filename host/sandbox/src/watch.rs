//! The scan of the handlers' files: one thread for all of them.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::errors::SandboxError;

const NAME: &str = "pumphouse-watch";

/// The scanning thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Only ever dropped: that is what wakes the thread to end.
    _stop: SyncSender<()>,
}

impl Watcher {
    /// Calls `scan` in every interval, until it answers that there is nothing left to scan.
    pub(crate) fn start(
        interval: Duration,
        scan: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, SandboxError> {
        let (stop, stopped) = sync_channel(0);
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || {
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) && scan() {}
            })
            .map_err(|error| SandboxError::Thread(NAME, error))?;
        Ok(Self { _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_thread_ends_when_the_watcher_goes() {
        let (scanned, scans) = channel();
        let watcher =
            Watcher::start(Duration::from_millis(1), move || scanned.send(()).is_ok()).unwrap();
        scans.recv_timeout(Duration::from_secs(10)).unwrap();
        drop(watcher);
        while scans.recv_timeout(Duration::from_secs(10)) == Ok(()) {}
        assert_eq!(
            scans.recv_timeout(Duration::from_secs(10)),
            Err(RecvTimeoutError::Disconnected)
        );
    }
}
