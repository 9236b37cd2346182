//! Fuzzes reviews.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| memgate_fuzz::review(input));
