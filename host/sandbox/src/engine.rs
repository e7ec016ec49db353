//! The engine and its pool of instances. The settings are measured ones; docs/adr/0003 says which matter.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

use crate::errors::SandboxError;
use crate::limits::{CORE_INSTANCES, MEMORIES, TABLES};
use crate::settings::SandboxSettings;

/// The most frames of a guest's backtrace.
pub(crate) const FRAMES: usize = 32;

/// What an instance leaves in memory for the next one: three to four times what a small guest touches.
const KEEP_RESIDENT: usize = 2 * 1024 * 1024;
/// What host functions need of a stack beside the guest.
const HOST_STACK: usize = 1024 * 1024;
const SMALLEST_STACK: usize = 64 * 1024;
const LARGEST_STACK: usize = 64 * 1024 * 1024;
const LARGEST_MEMORY: u64 = 4 * 1024 * 1024 * 1024;

/// The engine for compiled guests: many small instances.
pub(crate) fn lean(settings: &SandboxSettings) -> Result<Engine, SandboxError> {
    validate(settings)?;
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .concurrency_support(false)
        .memory_init_cow(true)
        // One component at a time, on one core: the others are the guests'.
        .parallel_compilation(false)
        .wasm_memory64(false)
        .max_wasm_stack(settings.stack)
        .async_stack_size(settings.stack + HOST_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(FRAMES))
        // Line numbers would have the host parse a guest's debugging information.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings)?));
    Engine::new(&config).map_err(|error| SandboxError::Pool {
        slots: settings.pool_slots,
        memory: settings.max_memory,
        text: format!("{error:#}"),
    })
}

fn pool(settings: &SandboxSettings) -> Result<PoolingAllocationConfig, SandboxError> {
    let slots = number("host.pool_slots", settings.pool_slots)?;
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    if !scan {
        tracing::info!(
            "the kernel has no pagemap scan (Linux 6.7 has): a call costs about three times as much"
        );
    }
    // Without the scan a large part that stays resident is slower than none.
    let resident = if scan { KEEP_RESIDENT } else { 0 };
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(if scan { Enabled::Yes } else { Enabled::No })
        .linear_memory_keep_resident(resident)
        .table_keep_resident(resident)
        .max_memory_size(number("limits.memory", settings.max_memory)?)
        .table_elements(number("limits.table", settings.max_table_elements)?)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_core_instances_per_component(CORE_INSTANCES)
        .total_component_instances(slots)
        .total_stacks(slots)
        .total_memories(times("host.pool_slots", slots, MEMORIES)?)
        .total_tables(times("host.pool_slots", slots, TABLES)?)
        .total_core_instances(times("host.pool_slots", slots, CORE_INSTANCES)?);
    Ok(pool)
}

fn validate(settings: &SandboxSettings) -> Result<(), SandboxError> {
    let wrong = |key, text: &str| Err(SandboxError::Setting { key, text: text.to_owned() });
    if settings.pool_slots == 0 {
        return wrong("host.pool_slots", "it must be at least 1");
    }
    if settings.guest_threads == Some(0) {
        return wrong("host.guest_threads", "it must be at least 1");
    }
    if !(1..=LARGEST_MEMORY).contains(&settings.max_memory) {
        return wrong("limits.memory", "it must be between 1 byte and 4 GiB");
    }
    if !(SMALLEST_STACK..=LARGEST_STACK).contains(&settings.stack) {
        return wrong("stack", "it must be between 64 KiB and 64 MiB");
    }
    if settings.scan_interval.is_zero() {
        return wrong("scan_interval", "it must be longer than zero");
    }
    Ok(())
}

fn number<A, B: TryFrom<A>>(key: &'static str, number: A) -> Result<B, SandboxError> {
    let large = |_| SandboxError::Setting { key, text: "it is too large".to_owned() };
    B::try_from(number).map_err(large)
}

fn times(key: &'static str, slots: u32, by: u32) -> Result<u32, SandboxError> {
    let large = || SandboxError::Setting { key, text: "it is too large".to_owned() };
    slots.checked_mul(by).ok_or_else(large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fr_23_a_pool_that_the_machine_can_not_reserve_is_an_error_that_says_what_to_lower() {
        let settings = SandboxSettings { pool_slots: 60_000, ..SandboxSettings::default() };
        let error = lean(&settings).unwrap_err();
        assert!(matches!(error, SandboxError::Pool { slots: 60_000, .. }), "{error}");
        assert!(error.to_string().contains("lower `host.pool_slots`"), "{error}");
    }

    #[test]
    fn senseless_settings_are_refused_by_key() {
        let ok = SandboxSettings::default();
        for (settings, key) in [
            (SandboxSettings { pool_slots: 0, ..ok.clone() }, "host.pool_slots"),
            (SandboxSettings { max_memory: 0, ..ok.clone() }, "limits.memory"),
            (SandboxSettings { max_memory: 5 << 30, ..ok.clone() }, "limits.memory"),
            (SandboxSettings { guest_threads: Some(0), ..ok.clone() }, "host.guest_threads"),
            (SandboxSettings { stack: 1, ..ok.clone() }, "stack"),
        ] {
            assert!(lean(&settings).unwrap_err().to_string().contains(key), "{key}");
        }
    }
}
