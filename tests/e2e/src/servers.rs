//! What the tests of all brokers that are other processes have in common.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Runtime;

/// Where servers and proxies live: it lasts as long as the process.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("a runtime")
    })
}

/// Waits for what servers and proxies do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let _inside = runtime().enter();
    runtime().block_on(future)
}

/// A name that no other test uses.
#[must_use]
pub fn unique(name: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{number}", std::process::id())
}
