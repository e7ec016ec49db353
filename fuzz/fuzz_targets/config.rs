//! See `pumphouse_fuzzing::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::config(data));
