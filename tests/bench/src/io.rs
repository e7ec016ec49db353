//! The runtime that pumps and plain consumers run on.

use std::future::Future;

use anyhow::Result;
use tokio::runtime::Builder;

/// Runs this to its end, and leaves behind what it began and did not await.
pub(crate) fn run<T>(measure: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = Builder::new_multi_thread().thread_name("bench-io").enable_all().build()?;
    let measured = runtime.block_on(measure);
    runtime.shutdown_background();
    measured
}
