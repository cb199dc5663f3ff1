#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| norfab_fuzz_targets::payloads(data));
