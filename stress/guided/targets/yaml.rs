//! Fuzzes manifests.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| memgate_fuzz::yaml(input));
