//! The fuzz target `step_paths`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_work::fuzzing::step_paths::check(data));
