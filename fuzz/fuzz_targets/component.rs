//! See `pumphouse_fuzzing::component`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::component(data));
