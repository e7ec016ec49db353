//! Names on servers that several tests share.

use std::sync::atomic::{AtomicU64, Ordering};

/// A name that no other test of this process uses. What ends in `.fifo` still does, as SQS wants it.
#[must_use]
pub fn unique(stem: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    match stem.strip_suffix(".fifo") {
        Some(stem) => format!("{stem}-{number}.fifo"),
        None => format!("{stem}-{number}"),
    }
}
