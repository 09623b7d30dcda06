//! The fuzz target `cursors`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_contract::fuzzing::cursors::check(data));
