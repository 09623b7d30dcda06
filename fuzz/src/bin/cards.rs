//! The fuzz target `cards`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_work::fuzzing::cards::check(data));
