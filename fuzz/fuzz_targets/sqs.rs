//! See `pumphouse_fuzzing::sqs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::sqs(data));
