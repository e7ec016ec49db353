//! See `pumphouse_fuzzing::pubsub`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::pubsub(data));
