//! The fuzz target `composition_inputs`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_compose::fuzzing::composition_inputs::check(data));
