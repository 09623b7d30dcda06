//! The fuzz target `root_gate`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_contract::fuzzing::root_gate::check(data));
