//! See `pumphouse_fuzzing::rocketmq`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::rocketmq(data));
