//! `pumphouse run`: the host, until it is told to stop.

use anyhow::Result;

use crate::args::Run;
use crate::exit::Exit;
use crate::host;

pub(crate) fn run(arguments: &Run) -> Result<Exit> {
    // Before the file is read: what is saved during the start is seen afterwards.
    let watch = host::Watch::new(arguments.config.clone());
    let Some(loaded) = host::load_with_warnings(&arguments.config) else {
        return Ok(Exit::Configuration);
    };
    host::log(&loaded.config)?;
    // Guests have a runtime of their own; this one is for everything that must stay on time.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("pumphouse-io")
        .enable_all()
        .build()?;
    let exit = runtime.block_on(host::run(watch, loaded))?;
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(exit)
}
