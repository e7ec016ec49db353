//! Calls a plug-in as often as it is told to, and says what that took.
//!
//! A line `fresh N` or `reused N` on standard input is answered by a line with the nanoseconds on the clock and those on
//! processors. It ends with its input.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use extism::{CompiledPlugin, Manifest, Plugin, PluginBuilder, Wasm};
use rustix::time::{ClockId, clock_gettime};

const PLUGIN: &str = include_str!("plugin.wat");
const HANDLE: &str = "handle";
const ACK: &[u8] = &[0];

/// As large as the benchmark's message with its body of 256 bytes, its id, its source and its header.
const MESSAGE: [u8; 320] = [b'x'; 320];

fn main() -> Result<()> {
    let manifest = Manifest::new([Wasm::data(PLUGIN.as_bytes())]);
    let compiled = PluginBuilder::new(manifest).with_cache_disabled().compile()?;
    let mut reused = Plugin::new_from_compiled(&compiled)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, calls) = line.split_once(' ').context("no number of calls")?;
        let calls: u32 = calls.parse()?;
        let (began, before) = (Instant::now(), processor_time());
        for _ in 0..calls {
            match kind {
                "fresh" => fresh(&compiled)?,
                "reused" => call(&mut reused)?,
                _ => bail!("no such kind: {kind}"),
            }
        }
        let (wall, processors) = (began.elapsed(), processor_time().saturating_sub(before));
        println!("{} {}", wall.as_nanos(), processors.as_nanos());
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn fresh(compiled: &CompiledPlugin) -> Result<()> {
    call(&mut Plugin::new_from_compiled(compiled)?)
}

fn call(plugin: &mut Plugin) -> Result<()> {
    let answer: &[u8] = plugin.call(HANDLE, &MESSAGE[..])?;
    ensure!(answer == ACK, "no acknowledgement: {answer:?}");
    Ok(())
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
