//! The engines and their pools of instances. The settings are measured ones; docs/adr/0003 and 0014 say which matter.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

use crate::errors::SandboxError;
use crate::limits::{HEAVY, LEAN, Room};
use crate::settings::SandboxSettings;

/// The most frames of a guest's backtrace.
pub(crate) const FRAMES: usize = 32;

const MIB: usize = 1024 * 1024;
/// What host functions need of a stack beside the guest.
const HOST_STACK: usize = MIB;
const SMALLEST_STACK: usize = 64 * 1024;
const LARGEST_STACK: usize = 64 * 1024 * 1024;
const LARGEST_MEMORY: u64 = 4 * 1024 * 1024 * 1024;

/// What an engine's pool is made for. Both compile alike: an artefact of one is an artefact of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Profile {
    /// Compiled guests: many small instances.
    Lean,
    /// Guests that bring an interpreter: few large ones.
    Heavy,
}

impl Profile {
    /// What one instance may have.
    pub(crate) fn room(self) -> Room {
        match self {
            Self::Lean => LEAN,
            Self::Heavy => HEAVY,
        }
    }

    /// The key of the setting that says how many instances the pool has.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Lean => "host.pool_slots",
            Self::Heavy => "host.heavy_slots",
        }
    }

    /// How many instances the pool has.
    pub(crate) fn slots(self, settings: &SandboxSettings) -> usize {
        match self {
            Self::Lean => settings.pool_slots,
            Self::Heavy => settings.heavy_slots,
        }
    }

    /// The most elements of one table.
    pub(crate) fn table_elements(self, settings: &SandboxSettings) -> u64 {
        settings.max_table_elements.max(self.room().table_elements)
    }

    /// What an instance leaves in memory for the next one: three to four times what such a guest touches.
    fn keep_resident(self) -> usize {
        match self {
            Self::Lean => 2 * MIB,
            Self::Heavy => 32 * MIB,
        }
    }
}

/// An engine that only compiles, for every other: a pool's reservation would not fit a compiler's limits.
pub(crate) fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&compiled())
}

/// What compiled code depends on.
fn compiled() -> Config {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .concurrency_support(false)
        .memory_init_cow(true)
        // One component at a time, on one core: the others are the guests'.
        .parallel_compilation(false)
        .wasm_memory64(false)
        // Line numbers would have the host parse a guest's debugging information.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config
}

/// An engine with a pool of instances.
pub(crate) fn engine(profile: Profile, settings: &SandboxSettings) -> Result<Engine, SandboxError> {
    validate(settings)?;
    let mut config = compiled();
    config
        .max_wasm_stack(settings.stack)
        .async_stack_size(settings.stack + HOST_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(FRAMES))
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(profile, settings)?));
    Engine::new(&config).map_err(|error| SandboxError::Pool {
        key: profile.key(),
        slots: profile.slots(settings),
        memory: settings.max_memory,
        text: format!("{error:#}"),
    })
}

fn pool(
    profile: Profile,
    settings: &SandboxSettings,
) -> Result<PoolingAllocationConfig, SandboxError> {
    let (key, room) = (profile.key(), profile.room());
    let slots = number(key, profile.slots(settings))?;
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    if !scan {
        tracing::info!(
            "the kernel has no pagemap scan (Linux 6.7 has): a call costs about three times as much"
        );
    }
    // Without the scan a large part that stays resident is slower than none.
    let resident = if scan { profile.keep_resident() } else { 0 };
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(if scan { Enabled::Yes } else { Enabled::No })
        .linear_memory_keep_resident(resident)
        .table_keep_resident(resident)
        .max_memory_size(number("limits.memory", settings.max_memory)?)
        .table_elements(number("limits.table", profile.table_elements(settings))?)
        .max_memories_per_component(room.memories)
        .max_tables_per_component(room.tables)
        .max_core_instances_per_component(room.core_instances)
        .total_component_instances(slots)
        .total_stacks(slots)
        .total_memories(times(key, slots, room.memories)?)
        .total_tables(times(key, slots, room.tables)?)
        .total_core_instances(times(key, slots, room.core_instances)?);
    Ok(pool)
}

fn validate(settings: &SandboxSettings) -> Result<(), SandboxError> {
    let wrong = |key, text: &str| Err(SandboxError::Setting { key, text: text.to_owned() });
    for profile in [Profile::Lean, Profile::Heavy] {
        if profile.slots(settings) == 0 {
            return wrong(profile.key(), "it must be at least 1");
        }
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
    use std::hash::{DefaultHasher, Hash, Hasher};

    #[test]
    fn fr_23_a_pool_that_the_machine_can_not_reserve_is_an_error_that_says_what_to_lower() {
        let settings = SandboxSettings {
            pool_slots: 60_000,
            heavy_slots: 60_000,
            ..SandboxSettings::default()
        };
        for (profile, key) in
            [(Profile::Lean, "host.pool_slots"), (Profile::Heavy, "host.heavy_slots")]
        {
            let error = engine(profile, &settings).unwrap_err();
            assert!(matches!(error, SandboxError::Pool { slots: 60_000, .. }), "{error}");
            assert!(error.to_string().contains(&format!("lower `{key}`")), "{error}");
        }
    }

    #[test]
    fn an_artefact_of_one_engine_is_one_of_the_other() {
        let hash = |engine: Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        let pooled = |profile| engine(profile, &SandboxSettings::default()).unwrap();
        let compiler = hash(super::compiling().unwrap());
        assert_eq!(hash(pooled(Profile::Lean)), compiler);
        assert_eq!(hash(pooled(Profile::Heavy)), compiler);
    }

    #[test]
    fn senseless_settings_are_refused_by_key() {
        let ok = SandboxSettings::default();
        for (settings, key) in [
            (SandboxSettings { pool_slots: 0, ..ok.clone() }, "host.pool_slots"),
            (SandboxSettings { heavy_slots: 0, ..ok.clone() }, "host.heavy_slots"),
            (SandboxSettings { max_memory: 0, ..ok.clone() }, "limits.memory"),
            (SandboxSettings { max_memory: 5 << 30, ..ok.clone() }, "limits.memory"),
            (SandboxSettings { guest_threads: Some(0), ..ok.clone() }, "host.guest_threads"),
            (SandboxSettings { stack: 1, ..ok.clone() }, "stack"),
        ] {
            let error = engine(Profile::Lean, &settings).unwrap_err();
            assert!(error.to_string().contains(key), "{key}");
        }
    }
}
