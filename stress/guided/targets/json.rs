//! Fuzzes the JSON reader of the request path, beside serde_json.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| memgate_fuzz::json(input));
