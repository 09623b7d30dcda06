//! The fuzz target `work_cursors`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_work::fuzzing::work_cursors::check(data));
