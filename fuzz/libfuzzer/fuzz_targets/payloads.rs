//! The libFuzzer program of the target `rollcall_fuzz::payloads`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rollcall_libfuzzer::run(rollcall_fuzz::payloads, data));
