//! The scan of the handlers' files: one thread for all of them, which takes its time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::errors::SandboxError;
use crate::meter::thread_time;

const NAME: &str = "pumphouse-watch";

/// Files that are looked at in one go.
const SLICE: usize = 128;

/// A round takes so many times as long as it computes: less than a hundredth of a core, however many files there are.
const ROUND_PER_CPU: u32 = 128;

/// The scanning thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Only ever dropped: that is what wakes the thread to end.
    _stop: SyncSender<()>,
}

impl Watcher {
    /// Looks at all that `list` gives, round after round, until it gives none. A round takes `interval`, or longer
    /// where there is much to look at.
    pub(crate) fn start<T: Send + 'static>(
        interval: Duration,
        list: impl Fn() -> Option<Vec<T>> + Send + 'static,
        look: impl Fn(T) + Send + 'static,
    ) -> Result<Self, SandboxError> {
        let (stop, stopped) = sync_channel(0);
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || watch(interval, &stopped, list, look))
            .map_err(|error| SandboxError::Thread(NAME, error))?;
        Ok(Self { _stop: stop })
    }
}

fn watch<T>(
    interval: Duration,
    stopped: &Receiver<()>,
    list: impl Fn() -> Option<Vec<T>>,
    look: impl Fn(T),
) {
    let (mut left, mut step, mut computed) = (Vec::new(), interval, Duration::ZERO);
    while stopped.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
        let began = thread_time();
        if left.is_empty() {
            let Some(all) = list() else { return };
            left = all;
            step = step_of(interval, computed, left.len());
            computed = Duration::ZERO;
        }
        left.drain(left.len().saturating_sub(SLICE)..).for_each(&look);
        computed += thread_time().saturating_sub(began);
    }
}

/// The time from slice to slice.
fn step_of(interval: Duration, computed: Duration, files: usize) -> Duration {
    let round = interval.max(computed.saturating_mul(ROUND_PER_CPU));
    round / u32::try_from(files.div_ceil(SLICE).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn everything_is_looked_at_round_after_round_until_the_watcher_goes() {
        let (looked, looks) = channel();
        let list = || Some((0..300).collect());
        let watcher = Watcher::start(Duration::from_millis(3), list, move |n: u32| {
            let _ = looked.send(n);
        });
        for _ in 0..2 {
            let mut round: Vec<u32> = (0..300).map(|_| looks.recv_timeout(LONG).unwrap()).collect();
            round.sort_unstable();
            assert_eq!(round, (0..300).collect::<Vec<_>>());
        }
        drop(watcher);
        while looks.recv_timeout(LONG).is_ok() {}
        assert_eq!(looks.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_round_takes_long_where_there_is_much_to_look_at() {
        let second = Duration::from_secs(1);
        assert_eq!(step_of(second, Duration::ZERO, 0), second);
        assert_eq!(step_of(second, Duration::from_millis(1), 128), second);
        assert_eq!(step_of(second, Duration::from_millis(1), 1_280), second / 10);
        // 10,000 files, 20 ms to look at them: 2.56 s, in 79 steps.
        let step = step_of(second, Duration::from_millis(20), 10_000);
        assert_eq!(step, Duration::from_millis(2_560) / 79);
    }
}
