//! Fuzzes definitions.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| memgate_fuzz::crd(input));
