//! Waiting for something to become true, with an end.

use std::time::{Duration, Instant};

/// Long enough for what takes a second on a machine that does many things at once.
pub const LONG: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until it is so.
///
/// # Panics
/// When it is not in time.
pub fn until(limit: Duration, what: &str, mut so: impl FnMut() -> bool) {
    until_some(limit, what, || so().then_some(()));
}

/// Waits until there is one.
///
/// # Panics
/// When there is none in time.
pub fn until_some<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    poll(limit, LOOK_EVERY, &mut look)
        .unwrap_or_else(|| panic!("not within {} s: {what}", limit.as_secs_f64()))
}

/// Looks again and again until there is one; none when the time is over.
pub(crate) fn poll<T>(
    limit: Duration,
    every: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() > end {
            return found;
        }
        std::thread::sleep(every);
    }
}
