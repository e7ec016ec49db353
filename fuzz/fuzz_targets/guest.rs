//! See `pumphouse_fuzzing::guest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::guest(data));
