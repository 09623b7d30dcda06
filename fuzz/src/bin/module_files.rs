//! The fuzz target `module_files`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_compose::fuzzing::module_files::check(data));
