//! `pumphouse run`: the host, until it is told to stop.

use anyhow::Result;

use crate::args::Run;
use crate::exit::Exit;
use crate::host;

pub(crate) fn run(arguments: &Run) -> Result<Exit> {
    let Some(loaded) = host::load_with_warnings(&arguments.config) else {
        return Ok(Exit::Configuration);
    };
    host::log(&loaded.config)?;
    // Guests have a runtime of their own; this one is for everything that must stay on time.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("pumphouse-io")
        .enable_all()
        .build()?;
    let exit = runtime.block_on(host::run(arguments.config.clone(), loaded))?;
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(exit)
}
