//! See `pumphouse_fuzzing::artefact`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzzing::artefact(data));
